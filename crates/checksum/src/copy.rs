//! Bytes copied and checksummed in one pass.

/// Copies `len` bytes and returns their CRC32C, which is that of what arrives, even if somebody changes the source
/// meanwhile, and of what was read, whatever becomes of it. None when so many bytes, or this processor, need two
/// passes: nothing was copied then.
///
/// # Safety
/// `from` can be read and `to` written for `len` bytes, and they do not overlap.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> Option<u32> {
    #[cfg(all(target_arch = "x86_64", not(feature = "known-checksums")))]
    if crate::fold::takes(len) {
        // SAFETY: as the caller says, and this processor has what it takes.
        return Some(unsafe { crate::fold::copy(from, to, len) });
    }
    let _ = (from, to, len);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc32c;

    /// Bytes that repeat nowhere.
    fn bytes(len: usize) -> Vec<u8> {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let next = || {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            word as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    /// What arrives of a copy, one byte further than where an allocation begins, and its checksum.
    fn copied(from: &[u8]) -> Option<(Vec<u8>, u32)> {
        let mut to = vec![0xff; from.len() + 2];
        let at = to[1..].as_mut_ptr();
        // SAFETY: both are as long as that.
        let sum = unsafe { copy(from.as_ptr(), at, from.len()) };
        assert_eq!((to[0], to.pop()), (0xff, Some(0xff)));
        sum.map(|sum| (to.split_off(1), sum))
    }

    /// Whether whole steps can be copied so here: other processors have nothing to test.
    fn is_able() -> bool {
        copied(&bytes(256)).is_some()
    }

    #[test]
    fn what_is_copied_in_one_pass_has_the_checksum_of_what_lies_there() {
        for len in (256..=4096).step_by(256).chain([65_536, 1 << 20]) {
            let from = bytes(len);
            let right = is_able().then(|| (from.clone(), crc32c(&from)));
            assert!(copied(&from) == right, "{len} bytes");
        }
    }

    #[test]
    fn what_is_no_whole_step_takes_two_passes() {
        for len in [0, 1, 255, 257, 4095, 4097] {
            assert!(copied(&bytes(len)).is_none(), "{len} bytes");
        }
    }

    #[test]
    fn every_bit_counts() {
        let from = bytes(1024);
        for bit in 0..8 * from.len() {
            let mut other = from.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let right = is_able().then(|| crc32c(&other));
            assert_eq!(copied(&other).map(|(_, sum)| sum), right, "bit {bit}");
        }
    }
}
