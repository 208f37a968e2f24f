//! One pass by carry-less multiplication, where the processor multiplies eight pairs of words together.
//!
//! The bytes are a polynomial, of which the checksum is the remainder by Castagnoli's. A part of it may be replaced by
//! anything with the same remainder: here by its product with the remainder of a power of x, added to what lies so far
//! behind it. Of each 256 bytes every 64 are folded onto the next ones' so, in the end all onto the last 16, of which
//! the processor has an instruction for the checksum.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64,
    _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128, _mm512_broadcast_i32x4,
    _mm512_castsi512_si128, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
    _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512, _mm512_zextsi128_si512,
};

/// Bytes of a register, of the part of one that is multiplied by itself, and of the registers that are folded together.
const REGISTER: usize = 64;
const LANE: usize = 16;
pub(crate) const STEP: usize = 4 * REGISTER;
/// Castagnoli's polynomial, its highest power in the lowest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The truth table of the sum of three bits.
const SUM: i32 = 0x96;

/// What both words of a lane are multiplied with to lie so far behind.
type Factors = [i64; 2];

const BY_STEP: Factors = factors(STEP);
const BY_REGISTER: Factors = factors(REGISTER);
const BY_LANES: [Factors; 3] = [factors(3 * LANE), factors(2 * LANE), factors(LANE)];

/// The remainder of x to the power of `power`, as the upper half of a word and one power less.
pub(crate) const fn remainder(power: usize) -> i64 {
    let (mut bits, mut done) = (1_u32 << 31, 0);
    while done < power {
        let carry = if bits & 1 == 1 { POLYNOMIAL } else { 0 };
        bits = (bits >> 1) ^ carry;
        done += 1;
    }
    (bits as i64) << 1
}

/// Those for so many bytes: the first word has 64 powers more than the second; products have 32 more than they are to.
const fn factors(bytes: usize) -> Factors {
    [remainder(8 * bytes + 32), remainder(8 * bytes - 32)]
}

/// Whether this number of bytes can be folded, and this processor supports it.
#[inline]
pub(crate) fn takes(len: usize) -> bool {
    len >= STEP
        && len.is_multiple_of(STEP)
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("sse4.2")
}

/// As [`crate::copy`], or with `AWAY` as [`crate::copy_away`].
///
/// # Safety
/// As there, and [`takes`] says that it can be done; with `AWAY`, `to` is a multiple of 64.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
pub(crate) unsafe fn copy<const AWAY: bool>(from: *const u8, to: *mut u8, len: usize) -> u32 {
    let pass = |at: usize, index: usize| {
        let at = at + index * REGISTER;
        // SAFETY: within the bytes, whose number is a multiple of a step; aligned where it has to be.
        unsafe {
            let bytes = _mm512_loadu_si512(from.add(at).cast());
            match AWAY {
                true => _mm512_stream_si512(to.add(at).cast(), bytes),
                false => _mm512_storeu_si512(to.add(at).cast(), bytes),
            }
            bytes
        }
    };
    let mut sums = [pass(0, 0), pass(0, 1), pass(0, 2), pass(0, 3)];
    // A checksum that begins as all ones is that of the first four bytes turned around.
    sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(-1)));
    let by = wide(BY_STEP);
    for at in (STEP..len).step_by(STEP) {
        for (index, sum) in sums.iter_mut().enumerate() {
            *sum = fold(*sum, by, pass(at, index));
        }
    }
    let by = wide(BY_REGISTER);
    let [first, second, third, fourth] = sums;
    finish(fold(fold(fold(first, by, second), by, third), by, fourth))
}

/// The checksum of what all was folded onto.
#[target_feature(enable = "avx512f,pclmulqdq,sse4.2")]
fn finish(sum: __m512i) -> u32 {
    let lanes = [
        _mm512_castsi512_si128(sum),
        _mm512_extracti32x4_epi32::<1>(sum),
        _mm512_extracti32x4_epi32::<2>(sum),
    ];
    let mut last = _mm512_extracti32x4_epi32::<3>(sum);
    for (lane, by) in lanes.into_iter().zip(BY_LANES) {
        let first = _mm_clmulepi64_si128::<0x00>(lane, narrow(by));
        let second = _mm_clmulepi64_si128::<0x11>(lane, narrow(by));
        last = _mm_xor_si128(last, _mm_xor_si128(first, second));
    }
    let crc = _mm_crc32_u64(0, _mm_cvtsi128_si64(last).cast_unsigned());
    !(_mm_crc32_u64(crc, _mm_extract_epi64::<1>(last).cast_unsigned()) as u32)
}

/// `sum`, multiplied to lie so far behind, added to what is there.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn fold(sum: __m512i, by: __m512i, onto: __m512i) -> __m512i {
    let first = _mm512_clmulepi64_epi128::<0x00>(sum, by);
    let second = _mm512_clmulepi64_epi128::<0x11>(sum, by);
    _mm512_ternarylogic_epi64::<SUM>(first, second, onto)
}

#[target_feature(enable = "sse2")]
#[inline]
fn narrow([first, second]: Factors) -> __m128i {
    _mm_set_epi64x(second, first)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn wide(by: Factors) -> __m512i {
    _mm512_broadcast_i32x4(narrow(by))
}
