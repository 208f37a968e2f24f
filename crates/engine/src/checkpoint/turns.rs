//! Serialises checkpoints, and takes requests for one.
//!
//! One checkpoint is written at a time ([`SingleFlight`]); an audit and the end of a layer hold the turn as well, so that none
//! begins meanwhile. The checkpoint loop sleeps on [`CheckpointTurns::until_asked`]; who finds no room in the journal
//! calls [`CheckpointTurns::ask`], which never waits. Invariant: `generation` and the trees' roots change only while the
//! turn is held.

use crate::wal::single_flight::SingleFlight;
use reactor::Event;

/// The turn to write a checkpoint.
#[derive(Default)]
pub(crate) struct CheckpointTurns {
    flight: SingleFlight,
    asked: Event,
}

impl CheckpointTurns {
    /// Waits for the end of the checkpoint in progress, from this call on.
    pub fn until_ended(&self) -> impl Future<Output = ()> + use<> {
        self.flight.until_ended()
    }

    /// Whether one is being written, or kept from being written.
    pub fn is_taken(&self) -> bool {
        self.flight.is_running()
    }

    /// Takes the turn, which is free.
    pub(super) fn take(&self) {
        let was_free = self.flight.begin();
        debug_assert!(was_free, "one checkpoint at a time");
    }

    /// The turn is free again.
    pub(super) fn give_back(&self) {
        self.flight.end();
        self.flight.wake();
    }

    /// Waiters for the end of one check again: the shard has failed.
    pub fn wake(&self) {
        self.flight.wake();
    }

    /// A checkpoint may be due: the checkpoint loop looks.
    pub fn ask(&self) {
        self.asked.notify();
    }

    /// Waits until one may be due, from this call on.
    pub fn until_asked(&self) -> impl Future<Output = ()> + use<> {
        self.asked.wait()
    }
}
