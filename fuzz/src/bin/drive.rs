//! Decoders of what lies on drives and in snapshot streams.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: convect_fuzz::choose(fuzz_targets::DRIVE), |data: &[u8]| convect_fuzz::run(data));
