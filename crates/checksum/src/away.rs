//! Memory that is written past the processor's caches.

/// Bytes of a register that every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
const REGISTER: usize = 16;

/// Copies `len` bytes, without their checksum, as [`crate::copy_away`] does.
///
/// # Safety
/// As there.
pub unsafe fn store(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len.is_multiple_of(REGISTER) && to.addr().is_multiple_of(REGISTER) {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        for at in (0..len).step_by(REGISTER) {
            // SAFETY: within the bytes; the target is aligned as it has to be.
            unsafe { _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast())) };
        }
        return;
    }
    // SAFETY: as the caller says.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
}

/// Orders this thread's non-temporal stores before all its later writes, for every other thread.
#[inline]
pub fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, which changes nothing.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_arrives_whatever_its_place_and_length() {
        let from: Vec<u8> = (0..200).collect();
        for behind in [0, 1, 16] {
            for len in [0, 1, 15, 16, 32, 160, 161] {
                let mut to = vec![0xff_u8; 300];
                let begin = to.as_ptr().align_offset(16) + behind;
                // SAFETY: both are longer than that.
                unsafe { store(from.as_ptr(), to[begin..].as_mut_ptr(), len) };
                settle();
                assert_eq!(to[begin..begin + len], from[..len]);
                let others = to[..begin].iter().chain(&to[begin + len..]);
                assert!(others.into_iter().all(|byte| *byte == 0xff));
            }
        }
    }
}
