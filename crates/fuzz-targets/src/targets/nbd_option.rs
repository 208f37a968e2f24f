//! The data of an NBD handshake option.

use crate::memory::bounded;

pub(crate) fn run(data: &[u8]) {
    // The handshake reads at most 64 KiB of an option. A query takes at least four bytes of it and a
    // reference of sixteen bytes in memory, in a list that may have grown to twice its length.
    bounded(1 << 20, || frontend_nbd::fuzz::option(data));
}
