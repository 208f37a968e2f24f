//! What was kept of persistent reservations, and commands that change them.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    bounded(4 << 20, || scsi::fuzz::kept(data));
});
