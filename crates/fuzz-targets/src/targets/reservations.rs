//! Stored persistent reservations, and PERSISTENT RESERVE OUT commands that change them.

use crate::memory::bounded;

pub(crate) fn run(data: &[u8]) {
    bounded(4 << 20, || scsi::fuzz::stored_reservations(data));
}
