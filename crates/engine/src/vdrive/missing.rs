//! A drive that is not there.

use block::{DriveIo, DriveQueue};

/// A queue to a drive that is not there.
pub struct Missing;

impl DriveQueue for Missing {
    fn submit(&self, io: DriveIo) {
        // Dropping it unanswered says that the drive is gone.
        drop(io);
    }

    fn in_flight(&self) -> usize {
        0
    }
}
