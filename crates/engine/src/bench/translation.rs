//! The translation benchmark: from a byte of a volume to its location, without drive I/O.
//!
//! It makes a map of its own size in memory and on a drive in memory, with the shard's own types,
//! and looks places up in it as a read does: bounds, map, state, heat.

use crate::shard::{PoolShared, Shard, ShardConfig};
use crate::space::{Class, GroupTable, VdriveSpace};
use crate::vdrive::{DriveShared, Layout, Member, Members, PartIo, StaleMap, VdriveIo};
use crate::{EngineError, ErrorCode, SpacePolicy};
use format::LayoutConfig;
use reactor::Handle;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use units::{BLOCK, CHUNK, DriveId, PoolId, ShardId, VdriveId};

/// A map that places can be looked up in.
pub struct Translation {
    shard: Rc<Shard>,
    #[cfg(test)]
    shared: Arc<PoolShared>,
    chunks: u32,
}

const VOLUME: u32 = 1;
/// Chunks made between checkpoints.
const BATCH: u32 = 8192;

impl Translation {
    /// A volume of `chunks` MiB, every one mapped, of which `resident` chunks' pages stay in
    /// memory.
    ///
    /// # Errors
    /// When memory for the pages cannot be had.
    pub async fn new(handle: Handle, chunks: u32, resident: usize) -> Result<Self, EngineError> {
        let group_blocks = 16384;
        let pages = u64::from(chunks) * 3 / 2 + 64 * group_blocks;
        let base = 65536;
        let spec = format!("ram:translation?size={}", (base + pages) * BLOCK as u64);
        let explain = |failed: String| EngineError::new(ErrorCode::Io, failed);
        let drive = drives::open(&spec).map_err(|failed| explain(failed.to_string()))?;
        let queue = drive
            .queue(&handle)
            .map_err(|failed| explain(failed.to_string()))?;
        let member = Member::new((0, 0), DriveId(1), false, StaleMap::new(group_blocks));
        let shared = Arc::<DriveShared>::default();
        let part = PartIo::new(&handle, queue, &spec, 0, Arc::new(member), shared);
        let table = Arc::new(GroupTable::default());
        let groups = (pages / group_blocks) as u32;
        table.add(
            VdriveId(0),
            VdriveSpace {
                class: Class::Meta,
                base,
                groups,
            },
        );
        let data = (u64::from(chunks) / 32 + 8) as u32;
        table.add(
            VdriveId(1),
            VdriveSpace {
                class: Class::Fast,
                base: 0,
                groups: data,
            },
        );
        let members = Arc::<Members>::default();
        let shared = Arc::new(PoolShared::new(
            table,
            SpacePolicy::FastFirst,
            members.clone(),
        ));
        let layout = Layout::new(LayoutConfig::Concat, &[base + pages]);
        let vdrive = VdriveIo::new(
            VdriveId(0),
            layout,
            vec![part],
            members,
            handle.dma().clone(),
        );
        let config = ShardConfig {
            pool: PoolId(1),
            shard: ShardId(0),
            shards: 1,
            group_blocks,
            journal_base: 256,
            journal_blocks: base - 256,
            ram_bytes: 0,
            spare_groups: 0,
            map_pages: resident,
            summaries: 0,
            ledger: 0,
        };
        let vdrives = BTreeMap::from([(VdriveId(0), Rc::new(vdrive))]);
        #[cfg(test)]
        let kept = shared.clone();
        let shard = Shard::new(config, handle, shared, vdrives);
        shard.set_volume(VOLUME, VOLUME);
        let failed = |failed: block::IoError| EngineError::new(ErrorCode::Io, failed.to_string());
        for first in (0..chunks).step_by(BATCH as usize) {
            for chunk in first..chunks.min(first + BATCH) {
                shard
                    .map_for_benchmark(VOLUME, chunk)
                    .await
                    .map_err(failed)?;
            }
            shard.checkpoint().await.map_err(failed)?;
            shard.forget_pages_for_benchmark();
        }
        Ok(Self {
            shard,
            #[cfg(test)]
            shared: kept,
            chunks,
        })
    }

    /// Looks up the block of each of `offsets` (bytes); returns how many are mapped. Pages that are
    /// not in memory are loaded.
    ///
    /// # Errors
    /// When a page cannot be loaded.
    pub async fn look_up(&self, offsets: &[u64]) -> Result<u64, EngineError> {
        let size = u64::from(self.chunks) * CHUNK as u64;
        let mut mapped = 0;
        for offset in offsets {
            assert!(
                offset + BLOCK as u64 <= size,
                "an operation lies in its volume"
            );
            let found = self.shard.look_up_for_benchmark(VOLUME, *offset).await;
            let found =
                found.map_err(|failed| EngineError::new(ErrorCode::Io, failed.to_string()))?;
            mapped += u64::from(found);
        }
        Ok(mapped)
    }

    /// Counts a read or a write of 4 KiB for each of these: by which export it came, and how long it took, in nanoseconds.
    pub fn record(&self, ended: &[(bool, u16, u64)]) {
        for (is_read, export, took) in ended {
            self.shard
                .record_for_benchmark(VOLUME, *is_read, *export, *took);
        }
    }

    /// Memory of the map in bytes: nodes and pages.
    pub fn bytes(&self) -> u64 {
        self.shard.status().map_bytes
    }
}

impl Drop for Translation {
    fn drop(&mut self) {
        drives::forget_ram("translation");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::{Either, select};
    use std::pin::pin;

    /// Long beside what a barrier takes, in nanoseconds.
    const LONG_NS: u64 = 100_000_000;

    #[test]
    fn a_barrier_is_not_answered_before_the_labels_tell_what_it_relies_on() {
        let reactor = reactor::Reactor::new(1).unwrap();
        let handle = reactor.handle().clone();
        let ended = reactor.block_on(async move {
            let map = Translation::new(handle.clone(), 2, 256).await.unwrap();
            let members = map.shared.members.clone();
            members.enforce();
            map.shard.map_for_benchmark(VOLUME, 0).await.unwrap();
            let shard = map.shard.clone();
            // A checkpoint begins with a barrier.
            let barrier = pin!(shard.checkpoint());
            let Either::Right((_, barrier)) = select(barrier, handle.sleep(LONG_NS)).await else {
                return false;
            };
            members.recorded_upto(members.wanted());
            barrier.await.is_ok()
        });
        assert!(ended.unwrap());
    }
}
