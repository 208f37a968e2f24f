//! SCSI commands with their data, one after the other, to one unit.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The units have 64 KiB each, and no command takes more than 8 MiB.
    bounded(16 << 20, || scsi::fuzz::commands(data));
});
