//! One pass by the processor's instruction for the checksum of a word, which takes three times as long as until the next
//! one can begin: four parts of a block are summed in parallel, and their sums put together at the end.
//!
//! A line goes from the source into registers, and from there to where it is to be and to a place of our own, out of
//! which its words are summed: no other thread can change them there.

use crate::fold::remainder;
use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
    _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256, _mm256_stream_si256,
};

/// Bytes that are copied of a part before their words are summed, of a part, and of all of them.
const LINE: usize = 64;
const PART: usize = 1024;
const PARTS: usize = 4;
pub(crate) const BLOCK: usize = PARTS * PART;
const REGISTER: usize = 32;
const WORD: usize = 8;

/// What the sum of each part but the last is multiplied with for the parts that follow it, and a product's words have 32
/// powers more than they are to.
const BEHIND: [i64; PARTS - 1] = [
    remainder(8 * 3 * PART - 32),
    remainder(8 * 2 * PART - 32),
    remainder(8 * PART - 32),
];

/// Lines on their way, aligned as registers are.
#[repr(align(64))]
struct Lines([[u64; LINE / WORD]; PARTS]);

/// Whether this number of bytes is whole blocks, and this processor supports it.
#[inline]
pub(crate) fn takes(len: usize) -> bool {
    len >= BLOCK
        && len.is_multiple_of(BLOCK)
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("sse4.2")
}

/// As [`crate::copy`], or with `AWAY` as [`crate::copy_away`].
///
/// # Safety
/// As there, and [`takes`] says that it can be done; with `AWAY`, `to` is a multiple of 64.
#[target_feature(enable = "avx2,pclmulqdq,sse4.2")]
pub(crate) unsafe fn copy<const AWAY: bool>(from: *const u8, to: *mut u8, len: usize) -> u32 {
    let (mut sum, mut at) = (u64::from(u32::MAX), 0);
    while at < len {
        // SAFETY: within the bytes, whose number is a multiple of a block.
        sum = unsafe { block::<AWAY>(sum, from.add(at), to.add(at)) };
        at += BLOCK;
    }
    !(sum as u32)
}

/// Copies a block; the sum of what came before it, and it.
///
/// # Safety
/// As [`copy`].
#[target_feature(enable = "avx2,pclmulqdq,sse4.2")]
#[expect(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not always compiled into those with features of a processor"
)]
unsafe fn block<const AWAY: bool>(before: u64, from: *const u8, to: *mut u8) -> u64 {
    let mut lines = Lines([[0; LINE / WORD]; PARTS]);
    let mut sums = [before, 0, 0, 0];
    let mut at = 0;
    while at < PART {
        for part in 0..PARTS {
            let own = lines.0[part].as_mut_ptr().cast::<__m256i>();
            for half in 0..LINE / REGISTER {
                let at = part * PART + at + half * REGISTER;
                // SAFETY: within the block and the line; aligned where it has to be.
                unsafe {
                    let bytes: __m256i = _mm256_loadu_si256(from.add(at).cast());
                    match AWAY {
                        true => _mm256_stream_si256(to.add(at).cast(), bytes),
                        false => _mm256_storeu_si256(to.add(at).cast(), bytes),
                    }
                    _mm256_store_si256(own.add(half), bytes);
                }
            }
        }
        // To the compiler this changes them: it would read the source once more for each word else, which the copy does
        // not have then if another thread changes it.
        // SAFETY: nothing is done.
        unsafe {
            core::arch::asm!("/* {0} */", in(reg) &raw mut lines, options(nostack, preserves_flags))
        };
        for word in 0..LINE / WORD {
            for part in 0..PARTS {
                sums[part] = _mm_crc32_u64(sums[part], lines.0[part][word]);
            }
        }
        at += LINE;
    }
    let mut all = sums[PARTS - 1];
    for part in 0..PARTS - 1 {
        let (sum, by) = (sums[part].cast_signed(), BEHIND[part]);
        let product = _mm_clmulepi64_si128::<0x00>(_mm_cvtsi64_si128(sum), _mm_cvtsi64_si128(by));
        all ^= _mm_crc32_u64(0, _mm_cvtsi128_si64(product).cast_unsigned());
    }
    all
}
