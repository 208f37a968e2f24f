//! What a shard tells of itself.

use super::state::Shard;
use crate::control::types::{IoCounters, MapCell};
use crate::tree::Lookup;
use block::IoError;
use format::{BlockCounts, BlockState, ChunkPage};
use std::collections::BTreeMap;
use units::{BLOCK, CHUNK, CHUNK_BLOCKS, EXTENT_BLOCKS, VdriveId};

/// Chunks looked at for one map; of a bigger volume, every n-th.
const MAP_CHUNKS: u32 = 16 * 1024;

/// A volume's part in a shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeTotals {
    /// Blocks by where they are.
    pub counts: BlockCounts,
    /// Operations.
    pub counters: IoCounters,
}

/// A shard's state.
#[derive(Clone, Debug, Default)]
pub struct ShardStatus {
    /// Operations and blocks.
    pub counters: IoCounters,
    /// Volumes by number.
    pub volumes: BTreeMap<u32, VolumeTotals>,
    /// Blocks in use by vdrive.
    pub used: BTreeMap<VdriveId, u64>,
    /// Memory for maps in bytes.
    pub map_bytes: u64,
    /// Memory for cached data in bytes.
    pub ram_bytes: u64,
    /// Why it serves no more.
    pub failed: Option<String>,
}

impl Shard {
    /// Its state now.
    pub fn status(&self) -> ShardStatus {
        let state = self.state.borrow();
        let trees: usize = state
            .volumes
            .values()
            .map(|volume| volume.tree.bytes())
            .sum();
        let leaves = state.leaf_queue.len() * (size_of::<super::leaf::Leaf>() + format::PAGE);
        let own = state.directory.bytes() + state.slots.bytes() + state.homes.bytes();
        let volumes = state.volumes.iter().map(|(id, volume)| {
            (
                *id,
                VolumeTotals {
                    counts: volume.counts,
                    counters: volume.counters,
                },
            )
        });
        let vdrives = self.vdrives.borrow();
        let used = vdrives.keys().map(|id| {
            let homes = state.alloc.used_homes(*id) * CHUNK_BLOCKS as u64;
            (*id, state.alloc.used_slots(*id) + homes)
        });
        ShardStatus {
            counters: state.counters,
            volumes: volumes.collect(),
            used: used.collect(),
            map_bytes: (trees + leaves + own + state.alloc.bytes()) as u64,
            ram_bytes: state.ram.bytes(),
            failed: state.failed.as_ref().map(ToString::to_string),
        }
    }

    /// Adds this shard's chunks of a volume of `size` bytes to `cells` of equal length.
    ///
    /// # Errors
    /// What a drive said.
    pub async fn map(
        &self,
        volume: u32,
        size: u64,
        mine: impl Fn(u32) -> bool,
        cells: &mut [MapCell],
    ) -> Result<(), IoError> {
        let chunks = size.div_ceil(CHUNK as u64) as u32;
        let step = chunks.div_ceil(MAP_CHUNKS).max(1);
        for chunk in (0..chunks).filter(|chunk| chunk % step == 0 && mine(*chunk)) {
            let start = u64::from(chunk) * CHUNK as u64;
            let bytes = (size - start).min(CHUNK as u64);
            let cell = (u128::from(start) * cells.len() as u128 / u128::from(size)) as usize;
            let cell = &mut cells[cell];
            let scale = u64::from(step);
            match self.peek(volume, chunk).await? {
                None => cell.empty += bytes * scale,
                Some(found) => {
                    cell.ram += found.ram * scale;
                    cell.fast += found.fast * scale;
                    cell.slow += found.slow * scale;
                    let stored = found.ram + found.fast + found.slow;
                    cell.empty += bytes.saturating_sub(stored) * scale;
                }
            }
        }
        Ok(())
    }

    /// A chunk's bytes by tier, without keeping its page in memory.
    async fn peek(&self, volume: u32, chunk: u32) -> Result<Option<MapCell>, IoError> {
        loop {
            let (level, key, ptr) = {
                let state = self.state.borrow();
                let Some(entry) = state.volumes.get(&volume) else {
                    return Ok(None);
                };
                match entry.tree.lookup(chunk) {
                    Lookup::Loaded(leaf) => {
                        let in_ram = |block: usize| {
                            let slot = leaf.ram[block / EXTENT_BLOCKS].get().checked_sub(1);
                            let extent = slot.and_then(|slot| state.ram.get(slot));
                            extent
                                .is_some_and(|extent| extent.block(block % EXTENT_BLOCKS).is_some())
                        };
                        return Ok(Some(self.cell(&leaf.page.borrow(), in_ram)));
                    }
                    Lookup::Absent => return Ok(None),
                    Lookup::OnDisk(ptr) => (0, chunk, ptr),
                    Lookup::NeedNode(level, key, ptr) => (level, key, ptr),
                }
            };
            if level > 0 {
                self.load(volume, level, key, ptr).await?;
                continue;
            }
            let page = match self
                .read_page(ptr, ChunkPage::header(volume, chunk, 0))
                .await
            {
                Ok(page) => ChunkPage::from_page(page),
                // It was replaced meanwhile: look again.
                Err(_) if self.was_replaced(volume, chunk, ptr) => continue,
                Err(error) => return Err(error),
            };
            return Ok(Some(self.cell(&page, |_| false)));
        }
    }

    pub(super) fn was_replaced(&self, volume: u32, chunk: u32, ptr: format::PagePtr) -> bool {
        let state = self.state.borrow();
        let entry = state.volumes.get(&volume);
        entry.is_none_or(
            |entry| !matches!(entry.tree.lookup(chunk), Lookup::OnDisk(now) if now == ptr),
        )
    }

    fn cell(&self, page: &ChunkPage, in_ram: impl Fn(usize) -> bool) -> MapCell {
        let mut cell = MapCell::default();
        for block in 0..CHUNK_BLOCKS {
            let bytes = match page.state(block) {
                BlockState::Zero => continue,
                _ if in_ram(block) => &mut cell.ram,
                BlockState::Home => &mut cell.slow,
                BlockState::Shadow => &mut cell.fast,
                BlockState::Dirty if self.class(page.slot(block)) == crate::space::Class::Fast => {
                    &mut cell.fast
                }
                BlockState::Dirty => &mut cell.slow,
            };
            *bytes += BLOCK as u64;
        }
        cell
    }
}
