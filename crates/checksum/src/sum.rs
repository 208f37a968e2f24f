//! The checksum of bytes where they lie.

use crc_fast::{CrcAlgorithm, checksum};

/// CRC32C (Castagnoli) of `bytes`.
// Not inlined: all below it is, and would be built again, and less optimised, in each crate that calls it.
#[inline(never)]
pub fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(any(debug_assertions, feature = "known-checksums"))]
    if let Some(known) = crate::known::crc_of(bytes) {
        return known;
    }
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_castagnoli() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}
