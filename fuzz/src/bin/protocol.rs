//! Decoders of what clients send.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: convect_fuzz::choose(fuzz_targets::PROTOCOL), |data: &[u8]| convect_fuzz::run(data));
