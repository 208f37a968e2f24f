//! Big-endian accessors for headers of known length.

#[inline]
pub(crate) fn u16_at(data: &[u8; 48], at: usize) -> u16 {
    u16::from_be_bytes([data[at], data[at + 1]])
}

#[inline]
pub(crate) fn u32_at(data: &[u8; 48], at: usize) -> u32 {
    u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

#[inline]
pub(crate) fn put(data: &mut [u8; 48], at: usize, value: &[u8]) {
    data[at..at + value.len()].copy_from_slice(value);
}
