//! Little-endian fields in byte slices.

use units::Place;

#[inline]
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[inline]
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn get_u128(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}

/// A place takes six bytes.
#[inline]
pub(crate) fn get_place(bytes: &[u8], at: usize) -> Place {
    let (low, high) = (get_u32(bytes, at), get_u16(bytes, at + 4));
    Place::from_bits(u64::from(low) | u64::from(high) << 32)
}

/// Whether all of some words are zeroes, without a way out at the first that is not: the processor examines several
/// together. The remainder of a word is not examined.
#[inline]
pub(crate) fn is_zero(words: &[u8]) -> bool {
    let (words, _) = words.as_chunks::<8>();
    words
        .iter()
        .fold(0, |sum, word| sum | u64::from_ne_bytes(*word))
        == 0
}

#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

#[inline]
pub(crate) fn put_place(bytes: &mut [u8], at: usize, place: Place) {
    put(bytes, at, &place.bits().to_le_bytes()[..6]);
}
