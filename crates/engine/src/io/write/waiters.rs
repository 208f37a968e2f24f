//! Writes that wait for space, and the event of freed space.
//!
//! Owns the number of those that wait, which the mover, the merge of layers and demotion depend on (they do immediately what they would
//! otherwise pace), and the order in which they are served while the pool has policies ([`Line`]). A write counts for as long
//! as it keeps its [`Waiting`], so one that is dropped while it waits is not counted forever. A waiter calls
//! [`SpaceWaiters::until_made`] before it looks for slots. Everything that frees slots calls [`SpaceWaiters::wake`]; it
//! says that space *may* have been freed, and a woken waiter checks again.

use crate::io::levels::{InLine, Line};
use qos::Due;
use reactor::Event;
use std::cell::Cell;

/// Waiters for space.
#[derive(Default)]
pub(crate) struct SpaceWaiters {
    made: Event,
    waiting: Cell<usize>,
    line: Line,
}

/// A write that waits for space, until it is dropped.
pub(crate) struct Waiting<'a>(&'a SpaceWaiters);

impl SpaceWaiters {
    /// Whether any write is waiting.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Counts a write that waits.
    pub(super) fn enter(&self) -> Waiting<'_> {
        self.waiting.set(self.waiting.get() + 1);
        Waiting(self)
    }

    /// Waits until space may have been freed, from this call on.
    pub(super) fn until_made(&self) -> impl Future<Output = ()> + use<> {
        self.made.wait()
    }

    /// Space may have been freed: waiters check again.
    pub fn wake(&self) {
        self.made.notify();
    }

    /// Whether a write of this priority may take slots before all waiters.
    pub(super) fn may_pass(&self, due: Due) -> bool {
        self.line.may_pass(due)
    }

    /// The write has taken slots.
    pub(super) fn passed(&self) {
        self.line.went();
    }

    /// Enqueues a write of this priority.
    pub(super) fn line_up(&self, due: Due) -> InLine<'_> {
        self.line.join(due)
    }

    /// Wakes the next in the line, if any: it may find more now.
    pub(super) fn wake_line(&self) {
        if !self.line.is_empty() {
            self.wake();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waiting = &self.0.waiting;
        waiting.set(waiting.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_line_is_woken_only_while_somebody_stands_in_it() {
        let waiters = SpaceWaiters::default();
        let waiting = waiters.enter();
        let mut made = Box::pin(waiters.until_made());
        waiters.wake_line();
        assert!((&mut made).now_or_never().is_none());
        let place = waiters.line_up(Due::NONE);
        assert!(!waiters.may_pass(Due::NONE));
        waiters.wake_line();
        assert!(made.now_or_never().is_some());
        drop((place, waiting));
        assert!(waiters.may_pass(Due::NONE) && !waiters.are_any());
    }
}
