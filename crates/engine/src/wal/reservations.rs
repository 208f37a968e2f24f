//! Reservations of room in the journal: one for each piece of work whose records are made without waiting in between.
//!
//! A commit ends a page that is not full, so with one after every record a piece of work would take any number of pages.
//! So it reserves first (as a transaction of a file system's journal does), and holds a [`Room`] until its records are
//! made; how much is left is reckoned with as many pieces of work as hold one. A task that finds no room waits for
//! [`Reservations::until_freed`], called before the check, and checks again: room is freed when a reservation ends, when a
//! checkpoint truncates the journal, and when space of pages is reclaimed. Whether there is room is the journal's and the
//! checkpoint's to say (`Shard::has_journal_room`), which alone reserve.

use reactor::Event;
use std::cell::Cell;

/// Pieces of work that hold room, and those that wait for some.
#[derive(Default)]
pub(crate) struct Reservations {
    held: Cell<u64>,
    freed: Event,
}

/// Room in the journal for one piece of work, until it is dropped.
pub(crate) struct Room<'a>(&'a Reservations);

impl Reservations {
    /// How many pieces of work hold room.
    #[inline]
    pub fn held(&self) -> u64 {
        self.held.get()
    }

    /// Holds room that there is.
    #[inline]
    pub(super) fn hold(&self) -> Room<'_> {
        self.held.set(self.held.get() + 1);
        Room(self)
    }

    /// Waits until room may have become free, from this call on.
    pub fn until_freed(&self) -> impl Future<Output = ()> + use<> {
        self.freed.wait()
    }

    /// Room may have been freed: waiters check again.
    pub fn wake(&self) {
        self.freed.notify();
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.held.set(self.0.held.get() - 1);
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn room_that_is_given_back_wakes_who_waits() {
        let reservations = Reservations::default();
        let [one, two] = [reservations.hold(), reservations.hold()];
        assert_eq!(reservations.held(), 2);
        let mut freed = Box::pin(reservations.until_freed());
        assert!((&mut freed).now_or_never().is_none());
        drop(one);
        assert!(freed.now_or_never().is_some());
        drop(two);
        assert_eq!(reservations.held(), 0);
    }
}
