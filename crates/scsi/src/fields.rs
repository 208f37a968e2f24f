//! Big-endian numbers within CDBs and parameter data. What lies past the end reads as zero, so that
//! callers check lengths where the specification says so and nowhere else.

fn bytes<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    for (index, byte) in out.iter_mut().enumerate() {
        *byte = data.get(at + index).copied().unwrap_or(0);
    }
    out
}

/// The byte at `at`.
pub(crate) fn u8_at(data: &[u8], at: usize) -> u8 {
    data.get(at).copied().unwrap_or(0)
}

/// Two bytes at `at`.
pub(crate) fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes(data, at))
}

/// Three bytes at `at`.
pub(crate) fn u24_at(data: &[u8], at: usize) -> u32 {
    u32::from(u8_at(data, at)) << 16 | u32::from(u16_at(data, at + 1))
}

/// Four bytes at `at`.
pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes(data, at))
}

/// Eight bytes at `at`.
pub(crate) fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes(data, at))
}

/// Puts a number's bytes at `at`, which must be within `data`.
pub(crate) fn put(data: &mut [u8], at: usize, value: &[u8]) {
    data[at..at + value.len()].copy_from_slice(value);
}

/// Text as T10 has it: ASCII, cut or filled up with spaces.
pub(crate) fn put_text(data: &mut [u8], text: &str) {
    data.fill(b' ');
    for (byte, letter) in data.iter_mut().zip(text.bytes()) {
        *byte = if letter.is_ascii_graphic() {
            letter
        } else {
            b' '
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_past_the_end_is_zero() {
        let data = [1, 2, 3];
        assert_eq!(u8_at(&data, 3), 0);
        assert_eq!(u16_at(&data, 2), 0x300);
        assert_eq!(u24_at(&data, 0), 0x01_0203);
        assert_eq!(u32_at(&data, 1), 0x0203_0000);
        assert_eq!(u64_at(&data, 9), 0);
    }

    #[test]
    fn text_is_filled_up_and_made_printable() {
        let mut field = [0; 6];
        put_text(&mut field, "a\tb");
        assert_eq!(&field, b"a b   ");
    }
}
