//! Single flight: of several who want the same thing done, one does it, and the others wait and look whether that was
//! enough for them.
//!
//! Used by commits, writes to the journal's ring and checkpoints. A task that needs one calls [`SingleFlight::until_ended`]
//! **before** it looks whether there is anything left to do, so that an end between its look and its wait is not missed:
//!
//! 1. `let ended = flight.until_ended()`
//! 2. nothing left to do: done
//! 3. `!flight.begin()`: another one is at it; await `ended`, and from 1 again
//! 4. do it, [`SingleFlight::end`], and [`SingleFlight::wake`] those who wait
//!
//! After a failure `end` comes alone: the shard fails, and wakes all waiters in a fixed order (`Shard::fail`).

use reactor::Event;
use std::cell::Cell;

/// Whether one is running, and waiters for its end.
#[derive(Default)]
pub(crate) struct SingleFlight {
    running: Cell<bool>,
    ended: Event,
}

impl SingleFlight {
    /// Waits for the next end, from this call on.
    pub fn until_ended(&self) -> impl Future<Output = ()> + use<> {
        self.ended.wait()
    }

    /// Whether the caller is the one that does it.
    #[must_use]
    pub fn begin(&self) -> bool {
        !self.running.replace(true)
    }

    /// Whether one is running.
    pub fn is_running(&self) -> bool {
        self.running.get()
    }

    /// It has ended.
    pub fn end(&self) {
        self.running.set(false);
    }

    /// Waiters check again.
    pub fn wake(&self) {
        self.ended.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn one_does_it_and_the_others_look_again() {
        let flight = SingleFlight::default();
        assert!(flight.begin() && !flight.begin());
        let ended = flight.until_ended();
        flight.end();
        flight.wake();
        assert!(ended.now_or_never().is_some());
        assert!(!flight.is_running() && flight.begin());
    }
}
