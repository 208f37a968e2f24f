//! When data pinned to the fast tier is searched for and promoted.
//!
//! One task does so at a time, and ends once it found all of it there. A task that changes pins, or moves a pinned block to the
//! slow tier, asks for another pass. Invariant: a pass that is requested while the task runs is made by that task, so
//! [`PinPromoter::ask`] tells only one caller to start the task.

use std::cell::Cell;

/// Whether the task runs, and whether another pass is requested.
#[derive(Default)]
pub(crate) struct PinPromoter {
    is_promoting: Cell<bool>,
    again: Cell<bool>,
}

impl PinPromoter {
    /// Requests another pass. True if the caller has to start its task.
    #[must_use]
    pub(super) fn ask(&self) -> bool {
        self.again.set(true);
        !self.is_promoting.replace(true)
    }

    /// A pinned block was moved to the slow tier: the mover requests a pass in its next round.
    pub(super) fn note(&self) {
        self.again.set(true);
    }

    /// Whether another pass is requested.
    pub(super) fn is_asked(&self) -> bool {
        self.again.get()
    }

    /// The same, and it is begun.
    pub(super) fn take(&self) -> bool {
        self.again.replace(false)
    }

    /// Whether the task runs.
    pub(super) fn is_promoting(&self) -> bool {
        self.is_promoting.get()
    }

    /// The task has ended.
    pub(super) fn ended(&self) {
        self.is_promoting.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_task_makes_all_passes() {
        let pin_promoter = PinPromoter::default();
        pin_promoter.note();
        assert!(pin_promoter.is_asked() && !pin_promoter.is_promoting());
        assert!(pin_promoter.ask() && !pin_promoter.ask());
        assert!(pin_promoter.take() && !pin_promoter.take());
        pin_promoter.ended();
        assert!(pin_promoter.ask());
    }
}
