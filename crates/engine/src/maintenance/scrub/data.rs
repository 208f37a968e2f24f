//! The scrub of a chunk's data: slots and home, every copy.

use super::report::{FaultPlace, ScrubFault};
use super::walk::Part;
use crate::checkpoint::metadata_pages::chunk_page;
use crate::checkpoint::writer::Which;
use crate::maintenance::upkeep::Throttle;
use crate::map::radix::Lookup;
use crate::shard::state::{Shard, drive_error};
use crate::vdrive::Verified;
use block::{ErrorKind, IoError};
use format::{ChunkPage, PagePtr, crc32c};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK, CHUNK_BLOCKS, Place};

/// Runs read together.
const TOGETHER: usize = 16;
/// Blocks of them, at most, unless one run is longer.
const BLOCKS: usize = CHUNK_BLOCKS;

/// The state of a chunk when the scrub reached it.
struct Snapshot {
    volume: u32,
    chunk: u32,
    page: ChunkPage,
    ptr: PagePtr,
}

/// Contiguous copies: at home, or in slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    first: usize,
    count: usize,
    place: Place,
    home: bool,
}

/// The runs of a page: its home, from the first valid block to the last, and its slots.
fn stretches(page: &ChunkPage) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    let valid: Vec<usize> = page.home_mask().blocks().collect();
    if let (Some(first), Some(last)) = (valid.first(), valid.last()) {
        found.push(Stretch {
            first: *first,
            count: last + 1 - first,
            place: page.home().plus(*first as u64),
            home: true,
        });
    }
    for block in (0..CHUNK_BLOCKS).filter(|block| page.slot(*block).is_some()) {
        let place = page.slot(block);
        match found.last_mut() {
            Some(run)
                if !run.home
                    && run.first + run.count == block
                    && run.place.plus(run.count as u64) == place =>
            {
                run.count += 1;
            }
            _ => found.push(Stretch {
                first: block,
                count: 1,
                place,
                home: false,
            }),
        }
    }
    found
}

impl Shard {
    /// Scrubs a chunk's data.
    pub(super) async fn scrub_chunk(
        &self,
        volume: u32,
        chunk: u32,
        part: &Part<'_>,
        throttle: &mut Throttle<'_>,
    ) -> Result<(), IoError> {
        let Some(seen) = self.snapshot(volume, chunk, part).await? else {
            return Ok(());
        };
        let all = stretches(&seen.page);
        let mut rest = &all[..];
        while !rest.is_empty() {
            let mut blocks = 0;
            let fits = |stretch: &&Stretch| {
                blocks += stretch.count;
                blocks <= BLOCKS
            };
            let count = rest.iter().take(TOGETHER).take_while(fits).count().max(1);
            let (group, after) = rest.split_at(count);
            rest = after;
            self.scrub_group(&seen, group, part, throttle).await?;
        }
        Ok(())
    }

    async fn scrub_group(
        &self,
        seen: &Snapshot,
        group: &[Stretch],
        part: &Part<'_>,
        throttle: &mut Throttle<'_>,
    ) -> Result<(), IoError> {
        let mut bytes = 0;
        for stretch in group {
            let vdrive = self.vdrive(stretch.place.vdrive());
            let copies = vdrive.map_or(0, |vdrive| vdrive.copies());
            bytes += (stretch.count * BLOCK * copies) as u64;
        }
        throttle.wait(bytes).await;
        // From here on valid space is neither reused nor overwritten.
        let read_epoch = self.state.borrow_mut().deferred_frees.begin_read();
        if is_on(Mutation::ScrubUnguarded) {
            self.end_read(read_epoch);
        }
        let reads = group
            .iter()
            .map(|stretch| self.verify_stretch(seen, stretch));
        let results = join_all(reads).await;
        if !is_on(Mutation::ScrubUnguarded) {
            self.end_read(read_epoch);
        }
        for (stretch, result) in group.iter().zip(results) {
            let Some((found, copies)) = result? else {
                continue;
            };
            part.count(found.bytes, found.bytes / BLOCK as u64);
            self.settle_stretch(seen, stretch, &found, copies, part)
                .await;
        }
        Ok(())
    }

    /// `None` if the vdrive was removed from the pool.
    async fn verify_stretch(
        &self,
        seen: &Snapshot,
        stretch: &Stretch,
    ) -> Result<Option<(Verified, usize)>, IoError> {
        let Ok(vdrive) = self.vdrive(stretch.place.vdrive()) else {
            return Ok(None);
        };
        let first = stretch.first;
        let expected: Vec<Option<u32>> = (first..first + stretch.count)
            .map(|block| {
                self.still(seen, block, stretch.home)
                    .then(|| seen.page.crc(block))
            })
            .collect();
        let check =
            |index: usize, bytes: &[u8]| expected[index].is_none_or(|crc| crc32c(bytes) == crc);
        let counts = |index: usize| {
            expected[index].is_some() && self.still(seen, first + index, stretch.home)
        };
        let found = vdrive
            .verify(stretch.place.block(), stretch.count, &check, &counts)
            .await;
        let found = found.map_err(|error| drive_error(error, "the scrub has stopped"))?;
        Ok(Some((found, vdrive.copies())))
    }

    /// Whether a block's copy is still the one that was read.
    fn still(&self, seen: &Snapshot, block: usize, home: bool) -> bool {
        if is_on(Mutation::ScrubStill) {
            return true;
        }
        let state = self.state.borrow();
        let Some(entry) = state.volumes.get(&seen.volume) else {
            return false;
        };
        let holds = |page: &ChunkPage| {
            let there = if home {
                page.home() == seen.page.home() && page.home_valid(block)
            } else {
                page.slot(block).is_some() && page.slot(block) == seen.page.slot(block)
            };
            there && page.crc(block) == seen.page.crc(block)
        };
        match entry.tree.lookup(seen.chunk) {
            Lookup::Loaded(map_page) => holds(&map_page.page.borrow()),
            Lookup::OnDisk(ptr) => ptr == seen.ptr && holds(&seen.page),
            _ => false,
        }
    }

    /// The chunk's page now, without keeping it in memory. None when there is none, or when no
    /// drive has an intact one: the scrub of pages has reported that.
    async fn snapshot(
        &self,
        volume: u32,
        chunk: u32,
        part: &Part<'_>,
    ) -> Result<Option<Snapshot>, IoError> {
        loop {
            let (level, key, ptr) = {
                let state = self.state.borrow();
                let Some(entry) = state.volumes.get(&volume) else {
                    return Ok(None);
                };
                match entry.tree.lookup(chunk) {
                    Lookup::Loaded(map_page) => {
                        return Ok(Some(Snapshot {
                            volume,
                            chunk,
                            page: map_page.page.borrow().clone(),
                            ptr: entry.tree.ptr(chunk).unwrap_or_default(),
                        }));
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
            match self
                .read_page(ptr, ChunkPage::header(volume, chunk, 0))
                .await
            {
                Ok(page) => {
                    let Ok(page) = chunk_page(&self.state.borrow().alloc, page) else {
                        self.note_lost_page(Which::Volume(volume), 0, chunk, ptr, part);
                        return Ok(None);
                    };
                    return Ok(Some(Snapshot {
                        volume,
                        chunk,
                        page,
                        ptr,
                    }));
                }
                Err(_) if self.was_replaced(volume, chunk, ptr) => {}
                Err(error) if error.kind == ErrorKind::Medium => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn was_replaced(&self, volume: u32, chunk: u32, ptr: PagePtr) -> bool {
        let state = self.state.borrow();
        let entry = state.volumes.get(&volume);
        entry.is_none_or(
            |entry| !matches!(entry.tree.lookup(chunk), Lookup::OnDisk(now) if now == ptr),
        )
    }

    async fn settle_stretch(
        &self,
        seen: &Snapshot,
        stretch: &Stretch,
        found: &Verified,
        copies: usize,
        part: &Part<'_>,
    ) {
        let wrong: BTreeSet<usize> = found.bad.iter().map(|bad| bad.index).collect();
        for index in wrong {
            let of_block = || found.bad.iter().filter(|bad| bad.index == index);
            let block = stretch.first + index;
            let has_good = of_block().any(|bad| bad.mended) || of_block().count() < copies;
            let rescued = !has_good && self.rescue((seen.volume, seen.chunk), block).await;
            if !has_good && !rescued {
                part.scrub.lost.fetch_add(1, Ordering::Relaxed);
            }
            for bad in of_block() {
                part.scrub.note(ScrubFault {
                    volume: Some(seen.volume),
                    offset: u64::from(seen.chunk) * CHUNK as u64 + (block * BLOCK) as u64,
                    length: BLOCK as u64,
                    place: FaultPlace::Part {
                        vdrive: stretch.place.vdrive(),
                        part: bad.part,
                        block: stretch.place.block() + index as u64,
                    },
                    error: bad.error,
                    repaired: bad.mended || rescued,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::VdriveId;

    #[test]
    fn a_home_is_one_stretch_and_slots_that_follow_each_other_are_one() {
        let mut page = ChunkPage::new(1, 0);
        page.set_home(Place::new(VdriveId(2), 1000));
        for block in [3, 4, 9] {
            page.set_home_valid(block, true);
        }
        for (block, at) in [(9, 50), (10, 51), (11, 99), (13, 101)] {
            page.set_slot(block, Place::new(VdriveId(1), at));
        }
        let found: Vec<_> = stretches(&page)
            .iter()
            .map(|stretch| {
                (
                    stretch.first,
                    stretch.count,
                    stretch.place.block(),
                    stretch.home,
                )
            })
            .collect();
        let slots = [(9, 2, 50, false), (11, 1, 99, false), (13, 1, 101, false)];
        assert_eq!(found[0], (3, 7, 1003, true));
        assert_eq!(found[1..], slots);
    }
}
