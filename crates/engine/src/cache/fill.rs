//! Cache fills: reading the extent that a host waits for, with its neighbours, from the slow tier into RAM.

use super::read_cache::RamExtent;
use crate::control::explain::Cause;
use crate::io::read::slow_path::{InLine, Run, span_of};
use crate::map::page::MapPage;
use crate::shard::state::{Shard, State};
use crate::tiering::access_stats::{By, extent_of};
use crate::tiering::move_log::{Grounds, Move};
use crate::tiering::settings::{Admission, admission};
use crate::vdrive::Turn;
use block::{DmaBuf, DriveError};
use format::{BlockMask, BlockState, crc32c};
use placement::Blocks;
use qos::Due;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK_BLOCKS, EXTENT_BLOCKS};

/// How many extents before an eviction the policy's entry, and before that its cell, is prefetched into the CPU cache.
const LEAVES_SOON: [usize; 2] = [4, 8];

/// Reasons for a fill.
pub(crate) enum FillReason<'a> {
    /// A host waits for some of them and has its turn; scheduling parameters of its operation.
    Asked(Turn<'a>, Due),
    /// The same, and they are part of a region in which misses are dense: read in turn with the rest of it.
    Dense(Due),
    /// No host waits: they are the rest of such a region.
    ReadAhead,
    /// No host waits: predicted from earlier accesses. They have a turn at the disk.
    Predicted(Turn<'a>),
}

impl FillReason<'_> {
    /// Scheduling parameters of the waiting host operation.
    fn due(&self) -> Due {
        match self {
            Self::Asked(_, due) | Self::Dense(due) => *due,
            Self::ReadAhead | Self::Predicted(_) => Due::NONE,
        }
    }
}

/// How blocks were brought to RAM.
#[derive(Clone, Copy)]
pub(crate) struct FillOrigin {
    /// Extents that a host waits for.
    asked: u16,
    /// With their surroundings, since misses were dense there.
    dense: bool,
    predicted: bool,
}

impl FillOrigin {
    /// A host waits for those of these extents that are being read.
    pub fn asked(asked: u16) -> Self {
        Self {
            asked,
            dense: false,
            predicted: false,
        }
    }
}

impl Shard {
    /// Reads blocks at home with as much around them as the recent misses suggest, and keeps it
    /// in RAM. More chunks are fetched in the background. How much it is is decided when the disk is free for it: by
    /// then more misses are known. None if another read has brought them meanwhile, or is about to, or they are
    /// no longer there: the caller has to look them up again.
    pub(crate) async fn fetch(
        &self,
        by: By,
        (volume, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        run: &Run,
    ) -> Result<Option<DmaBuf>, DriveError> {
        let extent = run.first / EXTENT_BLOCKS;
        {
            let mut state = self.state.borrow_mut();
            state.access.regions().missed(volume, chunk, extent);
            state.come_to((volume, chunk), run.first, true);
        }
        self.fills.wake_prefetcher();
        let _aside = self.step_aside();
        let vdrive = self.vdrive(run.place.vdrive());
        let vdrive = vdrive.map_err(|_| DriveError::Gone)?;
        let turn = vdrive.turn(run.place.block(), EXTENT_BLOCKS, by.due).await;
        if !self.is_missing(map_page, run) {
            return Ok(None);
        }
        let fetches = self
            .state
            .borrow()
            .access
            .dense()
            .fetch(volume, chunk, extent);
        let mut wanted = BlockMask::default();
        (run.first..run.first + run.count).for_each(|block| wanted.set(block));
        // Extents of a dense region are read in turn with the rest of it.
        let why = match fetches.len() {
            1 => FillReason::Asked(turn, by.due),
            _ => {
                drop(turn);
                FillReason::Dense(by.due)
            }
        };
        let mut extents = 0u16;
        for fetch in &fetches {
            if fetch.chunk == chunk {
                extents = fetch.extents;
            } else {
                self.prefetch(volume, fetch.chunk, fetch.extents);
            }
        }
        let needed = extents_of(&wanted);
        // Extents that are in RAM already are not read again.
        let mut others = 0;
        let mut own = needed;
        for part in parts(self.fetchable(map_page, extents) | needed) {
            match part & needed {
                0 => others |= part,
                _ => own = part,
            }
        }
        if others != 0 {
            self.prefetch(volume, chunk, others);
        }
        let (data, start) = self
            .fetch_extents((volume, chunk), map_page, own, &wanted, why)
            .await?;
        let data = data.slice((run.first - start) * BLOCK, run.count * BLOCK);
        Ok(Some(data))
    }

    /// A host waits for fills of a chunk by others: they inherit its priority, since they may still wait for
    /// their turns.
    pub(crate) fn hurry(&self, map_page: &MapPage, due: Due) {
        let home = map_page.page.borrow().home();
        let Ok(vdrive) = self.vdrive(home.vdrive()) else {
            return;
        };
        let blocks = home.block()..home.block() + CHUNK_BLOCKS as u64;
        if let Some(urgency) = vdrive.urgency(due) {
            vdrive.hurry(blocks.clone(), urgency);
            self.fills.hurry(blocks, urgency);
        }
    }

    /// Whether all of a run is only at home, and nothing of it in RAM or being filled.
    fn is_missing(&self, map_page: &MapPage, run: &Run) -> bool {
        let (state, page) = (self.state.borrow(), map_page.page.borrow());
        let in_ram = |block: usize| {
            let slot = map_page.ram[block / EXTENT_BLOCKS].get().checked_sub(1);
            let extent = slot.and_then(|slot| state.ram.get(slot));
            extent.is_some_and(|extent| extent.block(block % EXTENT_BLOCKS).is_some())
        };
        let mut blocks = run.first..run.first + run.count;
        !map_page.freed.get()
            && page.home().plus(run.first as u64) == run.place
            && blocks.all(|block| {
                page.state(block) == BlockState::Home
                    && !in_ram(block)
                    && map_page.fetching.get() >> (block / EXTENT_BLOCKS) & 1 == 0
            })
    }

    /// Those of these extents with blocks that are only at home, and neither in RAM nor being filled.
    pub(super) fn fetchable(&self, map_page: &MapPage, extents: u16) -> u16 {
        let at_home = {
            let page = map_page.page.borrow();
            extents_of(&page.home_mask().and_not(page.slot_mask()))
        };
        let absent = (0..16).filter(|extent| map_page.ram[*extent].get() == 0);
        let absent = absent.fold(0u16, |mask, extent| mask | 1 << extent);
        extents & at_home & absent & !map_page.fetching.get()
    }

    /// Fetches neighbouring extents of a chunk that are at home, in one read. Returns the data and its first
    /// block.
    pub(crate) async fn fetch_extents(
        &self,
        chunk: (u32, u32),
        map_page: &Rc<MapPage>,
        extents: u16,
        wanted: &BlockMask,
        why: FillReason<'_>,
    ) -> Result<(DmaBuf, usize), DriveError> {
        let (low, high) = (
            extents.trailing_zeros() as usize,
            16 - extents.leading_zeros() as usize,
        );
        let (start, count) = (low * EXTENT_BLOCKS, (high - low) * EXTENT_BLOCKS);
        let span =
            (low..high).fold(0u16, |mask, extent| mask | 1 << extent) & !map_page.fetching.get();
        map_page.fetching.set(map_page.fetching.get() | span);
        let (ahead, predicted) = (
            matches!(why, FillReason::ReadAhead),
            matches!(why, FillReason::Predicted(_)),
        );
        let due = why.due();
        let (turn, _stream) = match why {
            FillReason::Asked(turn, _) | FillReason::Predicted(turn) => (InLine::Has(turn), None),
            // In the order of the head, so that contiguous hot data is read in one piece.
            FillReason::Dense(_) | FillReason::ReadAhead => {
                let at = map_page.page.borrow().home().plus(start as u64);
                let urgency =
                    (self.vdrive(at.vdrive()).ok()).and_then(|vdrive| vdrive.urgency(due));
                let stream = self.fills.stream_at(at.block(), urgency).await;
                (InLine::For(due), Some(stream))
            }
        };
        if ahead && (self.lifecycle.is_closing() || !self.state.borrow().access.dense().goes_on()) {
            map_page.fetching.set(map_page.fetching.get() & !span);
            self.fills.wake();
            return Err(DriveError::Gone);
        }
        let (home, expected) = {
            let page = map_page.page.borrow();
            let expected = (start..start + count).map(|block| {
                let at_home = page.state(block) == BlockState::Home;
                (at_home || wanted.has(block)).then(|| page.crc(block))
            });
            (page.home(), expected.collect::<Vec<_>>())
        };
        let check =
            |index: usize, bytes: &[u8]| expected[index].is_none_or(|crc| crc32c(bytes) == crc);
        let mut start = start;
        let mut data = self
            .read_place_in(turn, home.plus(start as u64), count, &check)
            .await;
        let unasked = ahead || predicted;
        if data.is_err() && !unasked {
            // The bad block may be outside of the range that the host requested.
            let (first, wanted_count) = span_of(wanted);
            let narrow = |index: usize, bytes: &[u8]| check(first - start + index, bytes);
            let (turn, place) = (InLine::For(due), home.plus(first as u64));
            data = self.read_place_in(turn, place, wanted_count, &narrow).await;
            start = first;
        }
        map_page.fetching.set(map_page.fetching.get() & !span);
        if let Ok(data) = &data {
            let needed = match unasked {
                true => 0,
                false => extents_of(wanted),
            };
            if !predicted {
                let ahead = (span & !needed).count_ones();
                self.state.borrow_mut().access.regions().fetched(ahead);
            }
            let origin = FillOrigin {
                asked: needed,
                dense: span != needed && !predicted,
                predicted,
            };
            self.keep_in_ram(map_page, chunk, start, data, origin);
            if needed != 0 {
                self.touch_ram(map_page, &wanted.blocks().collect::<Vec<_>>());
            }
        }
        self.fills.wake();
        Ok((data?, start))
    }

    fn touch_ram(&self, map_page: &MapPage, blocks: &[usize]) {
        let mut state = self.state.borrow_mut();
        for block in blocks {
            let Some(slot) = map_page.ram[block / EXTENT_BLOCKS].get().checked_sub(1) else {
                continue;
            };
            if let Some(extent) = state.ram.get_mut(slot) {
                extent.touched |= 1 << (block % EXTENT_BLOCKS);
                extent.referenced = true;
            }
        }
    }

    /// Keeps blocks that were read from the slow tier and have not changed since.
    pub(crate) fn keep_in_ram(
        &self,
        map_page: &Rc<MapPage>,
        chunk: (u32, u32),
        start: usize,
        data: &DmaBuf,
        origin: FillOrigin,
    ) {
        let now_ns = self.handle.now_ns();
        let mut state = self.state.borrow_mut();
        let page = map_page.page.borrow();
        let blocks = data.len() / BLOCK;
        for extent in start / EXTENT_BLOCKS..(start + blocks).div_ceil(EXTENT_BLOCKS) {
            if map_page.ram[extent].get() != 0 {
                continue;
            }
            let mut valid = 0u16;
            let mut copy = None;
            for block in extent * EXTENT_BLOCKS..(extent + 1) * EXTENT_BLOCKS {
                if block < start || block >= start + blocks || page.state(block) == BlockState::Zero
                {
                    continue;
                }
                let bytes = &data[(block - start) * BLOCK..][..BLOCK];
                if crc32c(bytes) == page.crc(block) || is_on(Mutation::RamUnproven) {
                    let copy = copy.get_or_insert_with(|| state.ram.buffer());
                    copy[block % EXTENT_BLOCKS * BLOCK..][..BLOCK].copy_from_slice(bytes);
                    valid |= 1 << (block % EXTENT_BLOCKS);
                }
            }
            let Some(data) = copy else { continue };
            let was_asked = origin.asked >> extent & 1 == 1;
            let settings = state.settings_of(chunk.0);
            let stays = settings.is_some_and(|settings| settings.stays_in_ram());
            let owner = settings.map_or(0, |settings| settings.volume());
            let left = state.ram.insert(RamExtent {
                map_page: map_page.clone(),
                chunk,
                owner,
                extent,
                data,
                valid,
                touched: 0,
                referenced: false,
                rounds: u8::from(stays),
                dense: origin.dense,
                ahead: !was_asked,
                fresh: !origin.predicted,
                predicted: origin.predicted,
            });
            let cause = match was_asked {
                true => Cause::Missed,
                false if origin.predicted => Cause::Foreseen,
                false => Cause::CameAlong,
            };
            let displaced = left.as_ref().map(RamExtent::name);
            let moved = Move::new(now_ns, cause, extent_of(chunk, extent), valid);
            state.ledger.note(moved.in_place_of(displaced));
            if left.is_some_and(|left| state.leaves_ram(left, now_ns)) {
                self.moves.wake_promoter();
            }
        }
    }
}

impl State {
    /// Decides about an extent that was evicted from RAM. True if it is to be promoted, which waits for
    /// the promoter.
    fn leaves_ram(&mut self, left: RamExtent, now_ns: u64) -> bool {
        let soon = LEAVES_SOON.map(|ahead| self.ram.leaves_in(ahead));
        self.access.begin_leaving(soon);
        let budget = self.limits.budget().map(|budget| &**budget);
        let admitted = admission(&self.volumes, budget, left.chunk, left.extent, now_ns);
        // A dense region is moved as a whole while read-ahead of it proves useful. Data that was read as a whole
        // may be part of a stream, which is not read again.
        let is_dense = left.dense && self.access.dense().is_sound() && left.touched != u16::MAX;
        let (rises, grounds) = match admitted {
            Admission::Never => (0, Cause::StayedKnobs.into()),
            Admission::NotToday => (0, Cause::StayedBudget.into()),
            _ if self.promotions.are_full() => (0, Cause::StayedQueued.into()),
            Admission::Always => (left.valid, Cause::RosePinned.into()),
            Admission::ByWorth(reluctance) if reluctance <= 1.0 && is_dense => {
                (left.valid, Cause::RoseDense.into())
            }
            Admission::ByWorth(reluctance) => {
                let blocks = Blocks {
                    extent: left.name(),
                    mask: left.valid,
                };
                match self.access.left_ram(blocks, left.touched, reluctance) {
                    Some(admission) => (admission.promote, Grounds::from(admission)),
                    None => (0, Cause::StayedUnasked.into()),
                }
            }
        };
        if rises == 0 {
            self.ledger
                .note(Move::new(now_ns, grounds, left.name(), left.valid));
        } else {
            self.promotions.add(left, rises, grounds);
        }
        rises != 0
    }
}

/// Extents that have some of these blocks.
pub(crate) fn extents_of(blocks: &BlockMask) -> u16 {
    let extents = blocks.blocks().map(|block| block / EXTENT_BLOCKS);
    extents.fold(0, |mask, extent| mask | 1 << extent)
}

/// Extents of a chunk that are side by side.
pub(crate) fn parts(mut extents: u16) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let low = extents.trailing_zeros();
        let long = (extents.checked_shr(low)?).trailing_ones();
        let part = ((1u32 << long) - 1) << low;
        extents &= !(part as u16);
        Some(part as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_side_by_side_are_fetched_together() {
        assert_eq!(parts(0).count(), 0);
        assert_eq!(parts(0xffff).collect::<Vec<_>>(), [0xffff]);
        let all: Vec<u16> = parts(0b1000_0000_0110_1101).collect();
        assert_eq!(all, [1, 0b1100, 0b110_0000, 1 << 15]);
    }
}
