//! Reservations by three initiators, one step after the other.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    bounded(16 << 20, || scsi::fuzz::reservations(data));
});
