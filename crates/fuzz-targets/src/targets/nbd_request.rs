//! The header of an NBD request.

use crate::memory::bounded;

pub(crate) fn run(data: &[u8]) {
    bounded(1 << 10, || frontend_nbd::fuzz::request(data));
}
