//! Digests (RFC 7143, section 13.1): CRC32C in little-endian byte order.

use crc_fast::{CrcAlgorithm, Digest, checksum};

/// Length of a digest in bytes.
pub(crate) const DIGEST_LEN: usize = 4;

/// Padding of a segment of `len` bytes to a multiple of four.
pub(crate) fn padding(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

/// Digest of one piece.
pub(crate) fn of(bytes: &[u8]) -> [u8; DIGEST_LEN] {
    (checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32).to_le_bytes()
}

/// Digest of a data segment with zero padding.
pub(crate) fn of_padded(bytes: &[u8]) -> [u8; DIGEST_LEN] {
    let pad = padding(bytes.len());
    if pad == 0 {
        return of(bytes);
    }
    of_two(bytes, &[0; 3][..pad])
}

/// Digest of two concatenated pieces.
pub(crate) fn of_two(first: &[u8], second: &[u8]) -> [u8; DIGEST_LEN] {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(first);
    digest.update(second);
    (digest.finalize() as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 3720, appendix B.4, in wire order.
    #[test]
    fn digests_match_the_specification() {
        assert_eq!(of(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(of(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(of(&ascending), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(of_two(&ascending[..5], &ascending[5..]), of(&ascending));
        assert_eq!(of_padded(&[1, 2, 3, 4, 5]), of(&[1, 2, 3, 4, 5, 0, 0, 0]));
    }
}
