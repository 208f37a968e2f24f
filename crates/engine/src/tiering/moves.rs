//! Moves between the tiers: wake-ups, moves in progress, and what prevents them.
//!
//! Two tasks move data: the mover (demotes and evicts) and the promoter. Both sleep until they are woken here, and neither
//! is waited for by its waker. A piece of their work holds a [`Move`] while it runs. An audit, which compares maps
//! with bitmaps, holds [`MovesPaused`] and waits until no [`Move`] is left; the mover and what brings up pinned blocks
//! ask [`Moves::are_paused`] before they begin another one.
//!
//! Also inputs of decisions: the fast tier is being **flushed** (all is written back, every copy goes), the maps are still being
//! **surveyed** for data on the fast tier after an opening, and whether every chunk that had copies then was
//! **looked over** by eviction once, so that only chunks in use are left unknown.

use reactor::Event;
use std::cell::Cell;

/// A shard's moves between tiers.
#[derive(Default)]
pub(crate) struct Moves {
    mover: Event,
    promoter: Event,
    under_way: Cell<usize>,
    paused: Cell<usize>,
    is_cooling: Cell<bool>,
    is_surveying: Cell<bool>,
    is_looked_over: Cell<bool>,
}

/// A piece of work that moves blocks, until it is dropped.
pub(crate) struct Move<'a>(&'a Moves);

/// Keeps blocks from moving by themselves, until it is dropped.
pub(crate) struct MovesPaused<'a>(&'a Moves);

impl Moves {
    /// A task needs space, or the mover has work.
    pub fn wake_mover(&self) {
        self.mover.notify();
    }

    /// Waits until the mover is woken, from this call on.
    pub(super) fn until_mover_woken(&self) -> impl Future<Output = ()> + use<> {
        self.mover.wait()
    }

    /// Extents wait for promotion.
    pub fn wake_promoter(&self) {
        self.promoter.notify();
    }

    /// Waits until the promoter is woken, from this call on.
    pub(super) fn until_promoter_woken(&self) -> impl Future<Output = ()> + use<> {
        self.promoter.wait()
    }

    /// A piece of work begins.
    pub(super) fn begin(&self) -> Move<'_> {
        self.under_way.set(self.under_way.get() + 1);
        Move(self)
    }

    /// Whether any is in progress.
    pub fn are_under_way(&self) -> bool {
        self.under_way.get() > 0
    }

    /// None is begun for as long as what is returned is kept.
    pub fn pause(&self) -> MovesPaused<'_> {
        self.paused.set(self.paused.get() + 1);
        MovesPaused(self)
    }

    /// Whether none is to be begun.
    pub(super) fn are_paused(&self) -> bool {
        self.paused.get() > 0
    }

    /// Whether the fast tier is being flushed.
    pub fn is_cooling(&self) -> bool {
        self.is_cooling.get()
    }

    /// It is being flushed from now on, or is not any longer.
    pub(super) fn set_cooling(&self, is_cooling: bool) {
        self.is_cooling.set(is_cooling);
    }

    /// Whether chunks with data on the fast tier are still being looked for, after an opening.
    pub fn is_surveying(&self) -> bool {
        self.is_surveying.get()
    }

    /// They are from now on, or are not any longer.
    pub fn set_surveying(&self, is_surveying: bool) {
        self.is_surveying.set(is_surveying);
    }

    /// Whether every chunk that had copies on the fast tier was examined since the shard began to serve.
    pub(super) fn is_looked_over(&self) -> bool {
        self.is_looked_over.get()
    }

    /// Every such chunk was.
    pub(super) fn note_looked_over(&self) {
        self.is_looked_over.set(true);
    }
}

impl Drop for Move<'_> {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
    }
}

impl Drop for MovesPaused<'_> {
    fn drop(&mut self) {
        self.0.paused.set(self.0.paused.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_paused_and_under_way_until_all_who_hold_them_are_gone() {
        let moves = Moves::default();
        let [one, two] = [moves.begin(), moves.begin()];
        drop(one);
        assert!(moves.are_under_way());
        let [held, again] = [moves.pause(), moves.pause()];
        drop((two, held));
        assert!(!moves.are_under_way() && moves.are_paused());
        drop(again);
        assert!(!moves.are_paused());
    }
}
