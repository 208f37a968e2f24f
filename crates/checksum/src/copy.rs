//! Bytes copied and checksummed in one pass.

/// Bytes of a line of the processor's caches.
const LINE: usize = 64;

/// Copies `len` bytes and returns their CRC32C, which is that of the destination, even if the source changes
/// meanwhile. `None` if this length, or this processor, needs two
/// passes: nothing was copied then.
///
/// # Safety
/// `from` can be read and `to` written for `len` bytes, and they do not overlap.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> Option<u32> {
    // SAFETY: as the caller says.
    unsafe { in_one_pass::<false>(from, to, len) }
}

/// As [`copy`], to memory that will not be used soon: it is written past the processor's caches, which else would
/// fetch all of it to have it overwritten. Other threads may see it late until [`crate::settle`].
///
/// # Safety
/// As there.
#[inline]
pub unsafe fn copy_away(from: *const u8, to: *mut u8, len: usize) -> Option<u32> {
    if !to.addr().is_multiple_of(LINE) {
        return None;
    }
    // SAFETY: as the caller says; whole lines are written.
    unsafe { in_one_pass::<true>(from, to, len) }
}

/// Uses the fastest method of this processor for this length.
///
/// # Safety
/// As [`copy`]; with `AWAY`, `to` is a multiple of a line.
#[inline]
unsafe fn in_one_pass<const AWAY: bool>(from: *const u8, to: *mut u8, len: usize) -> Option<u32> {
    #[cfg(any(debug_assertions, feature = "known-checksums"))]
    if crate::known::is_asked() {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    {
        if crate::fold::takes(len) {
            // SAFETY: as the caller says, and this processor has what it takes.
            return Some(unsafe { crate::fold::copy::<AWAY>(from, to, len) });
        }
        if crate::words::takes(len) {
            // SAFETY: as before.
            return Some(unsafe { crate::words::copy::<AWAY>(from, to, len) });
        }
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

    type Copying = unsafe fn(*const u8, *mut u8, usize) -> Option<u32>;

    /// The destination of a copy at an offset from a multiple of 64, and its checksum.
    fn copied_to(behind: usize, from: &[u8], copy: Copying) -> Option<(Vec<u8>, u32)> {
        let mut to = vec![0xff_u8; from.len() + 200];
        let begin = to.as_ptr().align_offset(64) + 64 + behind;
        let end = begin + from.len();
        // SAFETY: both are as long as that.
        let sum = unsafe { copy(from.as_ptr(), to[begin..].as_mut_ptr(), from.len()) };
        crate::settle();
        let others = to[..begin].iter().chain(&to[end..]);
        assert!(others.into_iter().all(|byte| *byte == 0xff));
        sum.map(|sum| (to[begin..end].to_vec(), sum))
    }

    /// Each way that this processor has, whatever is taken of them: the bytes of its steps, how it copies, and how past the
    /// caches. Other processors have nothing to test.
    fn ways() -> Vec<(usize, Copying, Copying)> {
        let mut ways: Vec<(usize, Copying, Copying)> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use crate::{fold, words};
            /// A function of a way as one that has no conditions: it is called where the way takes what it is given.
            macro_rules! way {
                ($copy:expr) => {
                    |from, to, len| {
                        // SAFETY: callers' memory is as long as that, and `takes` was asked.
                        Some(unsafe { $copy(from, to, len) })
                    }
                };
            }
            if fold::takes(fold::STEP) {
                ways.push((
                    fold::STEP,
                    way!(fold::copy::<false>),
                    way!(fold::copy::<true>),
                ));
            }
            if words::takes(words::BLOCK) {
                ways.push((
                    words::BLOCK,
                    way!(words::copy::<false>),
                    way!(words::copy::<true>),
                ));
            }
        }
        ways
    }

    #[test]
    fn what_is_copied_in_one_pass_has_the_checksum_of_what_lies_there() {
        for (step, copy, copy_away) in ways() {
            for steps in (1..=16).chain([64, 256]) {
                let from = bytes(steps * step);
                let right = Some((from.clone(), crc32c(&from)));
                assert!(
                    copied_to(1, &from, copy) == right,
                    "{steps} of {step} bytes"
                );
                let away = copied_to(0, &from, copy_away);
                assert!(away == right, "{steps} of {step} bytes");
            }
        }
    }

    #[test]
    fn a_block_takes_one_pass_where_the_processor_has_a_way() {
        let from = bytes(4096);
        let right = (!ways().is_empty()).then(|| (from.clone(), crc32c(&from)));
        assert!(copied_to(1, &from, copy) == right);
        assert!(copied_to(0, &from, copy_away) == right);
    }

    #[test]
    fn caches_are_passed_only_where_whole_lines_are_written() {
        assert!(copied_to(8, &bytes(4096), copy_away).is_none());
    }

    #[test]
    fn what_is_no_whole_step_takes_two_passes() {
        for len in [0, 1, 255, 257, 4095, 4097] {
            assert!(copied_to(1, &bytes(len), copy).is_none(), "{len} bytes");
        }
    }

    #[test]
    fn the_checksum_is_of_what_arrives_though_the_source_changes_meanwhile() {
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
        for (step, copy, copy_away) in ways() {
            let ended = AtomicBool::new(false);
            let from: Vec<AtomicU64> = (0..step / 8).map(|_| AtomicU64::new(0)).collect();
            let mut to = vec![0_u64; step / 8 + 8];
            let begin = to.as_ptr().align_offset(64);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for value in 0.. {
                        from.iter().for_each(|word| word.store(value, Relaxed));
                        if ended.load(Relaxed) {
                            break;
                        }
                    }
                });
                let (mut changed, mut wrong) = (0, 0);
                for round in 0..2_000_000_u64 {
                    let copy = if round % 2 == 0 { copy } else { copy_away };
                    let to = &mut to[begin..][..step / 8];
                    // SAFETY: both are as long as that; the source is only written by atomics.
                    let sum = unsafe { copy(from.as_ptr().cast(), to.as_mut_ptr().cast(), step) };
                    crate::settle();
                    let bytes: Vec<u8> = to.iter().flat_map(|word| word.to_ne_bytes()).collect();
                    wrong += u32::from(sum != Some(crc32c(&bytes)));
                    changed += u32::from(to.iter().any(|word| *word != to[0]));
                    if changed == 200 {
                        break;
                    }
                }
                ended.store(true, Relaxed);
                assert_eq!(wrong, 0, "of {changed} that changed on the way");
                assert!(changed > 0, "the source never changed");
            });
        }
    }

    #[test]
    fn every_bit_counts() {
        for (step, copy, _) in ways() {
            let from = bytes(step);
            for bit in 0..8 * from.len() {
                let mut other = from.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                let sum = copied_to(1, &other, copy).map(|(_, sum)| sum);
                assert_eq!(sum, Some(crc32c(&other)), "bit {bit}");
            }
        }
    }
}
