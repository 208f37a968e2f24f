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
        return Some(unsafe { crate::fold::copy::<false>(from, to, len) });
    }
    let _ = (from, to, len);
    None
}

/// As [`copy`], to memory that will not be used soon: it is written past the processor's caches, which else would
/// fetch all of it to have it overwritten. Other threads may see it late until [`crate::settle`].
///
/// # Safety
/// As there.
#[inline]
pub unsafe fn copy_away(from: *const u8, to: *mut u8, len: usize) -> Option<u32> {
    #[cfg(all(target_arch = "x86_64", not(feature = "known-checksums")))]
    if crate::fold::takes(len) && to.addr().is_multiple_of(crate::fold::REGISTER) {
        // SAFETY: as the caller says, and this processor has what it takes.
        return Some(unsafe { crate::fold::copy::<true>(from, to, len) });
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

    /// What arrives of a copy so far behind a multiple of 64, and its checksum.
    fn copied_to(
        behind: usize,
        from: &[u8],
        copy: unsafe fn(*const u8, *mut u8, usize) -> Option<u32>,
    ) -> Option<(Vec<u8>, u32)> {
        let mut to = vec![0xff_u8; from.len() + 200];
        let begin = to.as_ptr().align_offset(64) + 64 + behind;
        let end = begin + from.len();
        // SAFETY: both are as long as that.
        let sum = unsafe { copy(from.as_ptr(), to[begin..].as_mut_ptr(), from.len()) };
        let others = to[..begin].iter().chain(&to[end..]);
        assert!(others.into_iter().all(|byte| *byte == 0xff));
        sum.map(|sum| (to[begin..end].to_vec(), sum))
    }

    fn copied(from: &[u8]) -> Option<(Vec<u8>, u32)> {
        copied_to(1, from, copy)
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
            assert!(copied_to(0, &from, copy_away) == right, "{len} bytes");
        }
    }

    #[test]
    fn caches_are_passed_only_where_whole_lines_are_written() {
        assert!(copied_to(8, &bytes(4096), copy_away).is_none());
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
