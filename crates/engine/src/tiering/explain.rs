//! Where a block is and why, and the log entries that this is derived from.
//!
//! Each mover of blocks logs that with one call. Leaves out: keeping the notes ([`super::move_log`]).

use super::access_stats::{extent_of, in_extent};
use super::move_log::{Grounds, Move};
use crate::cache::fill::extents_of;
use crate::control::explain::{
    BlockPlace, Cause, CopyKind, DrivePlace, Explanation, ExtentHeat, ExtentPlace, MoveCount,
    MoveStatus, Spot,
};
use crate::map::page::{MapPage, live};
use crate::shard::state::{Shard, State};
use crate::space::{Class, Run};
use block::IoError;
use format::{BlockMask, BlockState};
use placement::Extent;
use std::collections::BTreeMap;
use units::{BLOCK, CHUNK, CHUNK_EXTENTS, EXTENT, EXTENT_BLOCKS, Place};

/// Most moves reported of an extent: of those that only concern RAM, and of the others.
const MOVES_MOST: usize = 8;

/// Reasons for demoting a chunk's blocks, by destination.
#[derive(Clone, Copy)]
pub(crate) struct Descent {
    /// Of the fast tier, into the chunk's home.
    pub home: Cause,
    /// Of the fast tier, into other slots.
    pub slots: Cause,
    /// Of the slow tier, where they were packed.
    pub packed: Cause,
}

impl Descent {
    /// Written, and not for a while since.
    pub const SETTLED: Self = Self {
        home: Cause::SankSettled,
        slots: Cause::PackedSettled,
        packed: Cause::Gathered,
    };
    /// Space is needed.
    pub const SHORT: Self = Self {
        home: Cause::SankShort,
        slots: Cause::PackedShort,
        packed: Cause::Gathered,
    };
    /// They are pinned to the slow tier.
    pub const PINNED: Self = Self {
        home: Cause::SankPinned,
        slots: Cause::PackedPinned,
        packed: Cause::Gathered,
    };
    /// They are on the slow tier and are pinned to the fast one.
    pub const RAISED: Self = Self {
        home: Cause::RaisedPinned,
        slots: Cause::RaisedPinned,
        packed: Cause::RaisedPinned,
    };
    /// The pool is being cooled.
    pub const COOLED: Self = Self {
        home: Cause::SankCooled,
        slots: Cause::PackedCooled,
        packed: Cause::Gathered,
    };
    /// Their groups are being freed; they stay on their tiers.
    pub const SPARED: Self = Self {
        home: Cause::SparedFast,
        slots: Cause::SparedFast,
        packed: Cause::SparedSlow,
    };
}

/// The volumes and snapshots of layers, by the layers' numbers.
pub(crate) type LayerNames = BTreeMap<u32, String>;

impl State {
    /// Logs a move of blocks of a chunk, with a reason for each extent.
    fn note_by_extent(
        &mut self,
        now_ns: u64,
        chunk: (u32, u32),
        blocks: &BlockMask,
        grounds: impl Fn(&Self, Extent) -> Grounds,
    ) {
        let extents = extents_of(blocks);
        for at in (0..CHUNK_EXTENTS).filter(|at| extents >> at & 1 == 1) {
            let extent = extent_of(chunk, at);
            let (grounds, blocks) = (grounds(self, extent), in_extent(blocks, at));
            self.ledger.note(Move::new(now_ns, grounds, extent, blocks));
        }
    }
}

impl Shard {
    /// Logs a move of blocks of a chunk.
    pub(crate) fn note_moves(
        &self,
        state: &mut State,
        cause: Cause,
        chunk: (u32, u32),
        blocks: &BlockMask,
    ) {
        if !blocks.is_empty() {
            let now_ns = self.handle.now_ns();
            state.note_by_extent(now_ns, chunk, blocks, |_, _| cause.into());
        }
    }

    /// Logs a move of one block to a place.
    pub(crate) fn note_block(
        &self,
        [fast, slow]: [Cause; 2],
        chunk: (u32, u32),
        block: usize,
        to: Place,
    ) {
        let cause = match self.class(to) {
            Class::Fast => fast,
            _ => slow,
        };
        let blocks = std::iter::once(block).collect();
        self.note_moves(&mut self.state.borrow_mut(), cause, chunk, &blocks);
    }

    /// Logs which of the blocks that a host has written into `runs` were not only on that tier before: to be
    /// called before the page is changed.
    pub(crate) fn note_written(
        &self,
        chunk: (u32, u32),
        map_page: &MapPage,
        first: usize,
        runs: &[Run],
    ) {
        let page = map_page.page.borrow();
        let mut at = first;
        for run in runs {
            let class = self.class(run.place);
            let is_new = |block: &usize| {
                page.state(*block) != BlockState::Dirty || self.class(page.slot(*block)) != class
            };
            let blocks = (at..at + run.count).filter(is_new).collect();
            let cause = match class {
                Class::Fast => Cause::Written,
                _ => Cause::WrittenSlow,
            };
            self.note_moves(&mut self.state.borrow_mut(), cause, chunk, &blocks);
            at += run.count;
        }
    }

    /// Logs which blocks of a range a host discards: to be called before the page is changed.
    pub(crate) fn note_discarded(
        &self,
        chunk: (u32, u32),
        map_page: &MapPage,
        (first, count): (usize, usize),
    ) {
        let page = map_page.page.borrow();
        let is_stored = |block: &usize| page.state(*block) != BlockState::Zero;
        let blocks = (first..first + count).filter(is_stored).collect();
        let state = &mut self.state.borrow_mut();
        self.note_moves(state, Cause::Discarded, chunk, &blocks);
    }

    /// Logs copies that are evicted from the fast tier for space: to be called before the policy is informed.
    pub(crate) fn note_evicted(&self, cause: Cause, chunk: (u32, u32), copies: &BlockMask) {
        let now_ns = self.handle.now_ns();
        let grounds = |state: &State, extent| match cause {
            Cause::EvictedLeast => match state.access.explain(extent) {
                Some(heat) => Grounds::evicted(cause, &heat),
                None => cause.into(),
            },
            _ => cause.into(),
        };
        let state = &mut self.state.borrow_mut();
        state.note_by_extent(now_ns, chunk, copies, grounds);
    }

    /// Drops the RAM cache, since the pool is being cooled.
    pub(super) fn clear_ram(&self) {
        let now_ns = self.handle.now_ns();
        let State { ram, ledger, .. } = &mut *self.state.borrow_mut();
        ram.clear(|left| {
            let cause = Cause::LeftCooled;
            ledger.note(Move::new(now_ns, cause, left.name(), left.valid));
        });
    }

    /// Counts of moves by reason.
    pub(crate) fn move_counts(&self) -> Vec<MoveCount> {
        self.state.borrow().ledger.counts().collect()
    }

    /// Where a block of a volume's chunk lies, and why.
    ///
    /// # Errors
    /// `Gone` when the volume is, or the drive's error.
    pub(crate) async fn explain(
        &self,
        volume: u32,
        chunk: u32,
        block: usize,
        names: &LayerNames,
    ) -> Result<Explanation, IoError> {
        let blocks: BlockMask = std::iter::once(block).collect();
        let owned = self
            .look(|state| {
                let layer = state.live(volume);
                live(state.volumes.get(&layer))?;
                Ok(state
                    .owned(layer, chunk, blocks)
                    .map(|owned| (layer, owned)))
            })
            .await;
        let (live, owned) = owned?;
        let state = self.state.borrow();
        let layer = owned.parts.first().map_or(live, |(layer, ..)| *layer);
        let extent = extent_of((layer, chunk), block / EXTENT_BLOCKS);
        let teller = Teller {
            now_ns: self.handle.now_ns(),
            state: &state,
            names,
        };
        let mut places = Vec::new();
        for (_, map_page, _) in &owned.parts {
            places = self.places(&teller, map_page, extent, block);
        }
        Ok(Explanation {
            offset: u64::from(chunk) * CHUNK as u64 + (block * BLOCK) as u64,
            inherited: layer != live,
            snapshot: names.get(&layer).filter(|_| layer != live).cloned(),
            places,
            heat: teller.heat(extent),
            moves: state
                .ledger
                .of(extent, MOVES_MOST)
                .map(|known| teller.tell(&known))
                .collect(),
            log_ns: teller
                .now_ns
                .saturating_sub(state.ledger.since_ns(Spot::Any)),
            log_is_whole: state.ledger.is_whole(),
        })
    }

    /// Places of a block according to its page, the fastest first.
    fn places(
        &self,
        teller: &Teller<'_>,
        map_page: &MapPage,
        extent: Extent,
        block: usize,
    ) -> Vec<BlockPlace> {
        let page = map_page.page.borrow();
        let state = page.state(block);
        let in_ram = map_page.ram[block / EXTENT_BLOCKS].get().checked_sub(1);
        let in_ram = in_ram.and_then(|slot| teller.state.ram.get(slot));
        let in_ram = in_ram.is_some_and(|copy| copy.block(block % EXTENT_BLOCKS).is_some());
        let slot = page.slot(block);
        let tier = match self.class(slot) {
            Class::Fast => Spot::Fast,
            _ => Spot::Slow,
        };
        let kind = match (state, tier) {
            (BlockState::Clean, _) => CopyKind::Copy,
            (_, Spot::Slow) => CopyKind::Packed,
            _ => CopyKind::Only,
        };
        let home = page.home().plus(block as u64);
        let found = [
            in_ram.then_some((Spot::Ram, CopyKind::Copy, None)),
            slot.is_some().then_some((tier, kind, Some(slot))),
            page.home_valid(block)
                .then_some((Spot::Slow, CopyKind::Home, Some(home))),
        ];
        let found = found.into_iter().flatten();
        let found = found.filter(|_| state != BlockState::Zero);
        found
            .map(|(tier, kind, place)| BlockPlace {
                tier,
                kind,
                vdrive: place.map(|place| place.vdrive().0),
                drives: place.map_or_else(Vec::new, |place| self.drive_places(place)),
                came: teller.came(extent, block % EXTENT_BLOCKS, tier),
                log_ns: teller
                    .now_ns
                    .saturating_sub(teller.state.ledger.since_ns(tier)),
            })
            .collect()
    }

    fn drive_places(&self, place: Place) -> Vec<DrivePlace> {
        let Ok(vdrive) = self.vdrive(place.vdrive()) else {
            return Vec::new();
        };
        let drives = vdrive.named_places_of(place.block()).into_iter();
        drives
            .map(|(drive, byte)| DrivePlace { drive, byte })
            .collect()
    }
}

/// Translates a shard's report for the control plane.
struct Teller<'a> {
    now_ns: u64,
    state: &'a State,
    names: &'a LayerNames,
}

impl Teller<'_> {
    fn tell(&self, known: &Move) -> MoveStatus {
        MoveStatus {
            ago_ns: self.now_ns.saturating_sub(known.at_ns),
            cause: known.grounds.cause,
            blocks: known.blocks,
            worth: known.grounds.worth,
            wanted: known.grounds.wanted,
            displaced: known.displaced.map(|extent| ExtentPlace {
                volume: self.names.get(&extent.volume).cloned(),
                offset: extent.number * EXTENT as u64,
            }),
        }
    }

    /// The move that brought a block of an extent to a tier, or a later merge of snapshots.
    fn came(&self, extent: Extent, block: usize, tier: Spot) -> Option<MoveStatus> {
        let mut moves = self.state.ledger.of(extent, usize::MAX);
        let found = moves.find(|known| {
            let cause = known.grounds.cause;
            let is_it = cause.to() == tier && !cause.drops() || cause == Cause::Merged;
            known.blocks >> block & 1 == 1 && is_it
        });
        found.map(|known| self.tell(&known))
    }

    fn heat(&self, extent: Extent) -> Option<ExtentHeat> {
        let heat = self.state.access.explain(extent)?;
        (heat.uses > 0).then_some(ExtentHeat {
            uses: heat.uses,
            idle_bytes: heat.idle_blocks * BLOCK as u64,
            worth: heat.worth,
            bar: heat.bar,
            wanted: heat.wanted,
        })
    }
}

#[cfg(test)]
mod tests;
