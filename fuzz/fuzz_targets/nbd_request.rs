//! The header of an NBD request.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    bounded(1 << 10, || frontend_nbd::fuzz::request(data));
});
