//! Data of the NBD handshake's options, as any client may send it.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The handshake reads at most 64 KiB of an option; a query is four bytes there at least and a
    // reference of sixteen here, and its list may have grown to twice that.
    bounded(1 << 20, || frontend_nbd::fuzz::option(data));
});
