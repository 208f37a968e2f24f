//! On-disk record of an object's step; it never crosses a page. Pure functions.
//!
//! | bytes | |
//! | --- | --- |
//! | 0..4 | the step's number: seconds since 1970 by the ring's step |
//! | 4..8 | CRC32C of the object's number, the step's and what follows |
//! | 8.. | 14 metrics (six in the first format) as binary32, in 64 bytes (32); or 128 of `counts.rs` |
//!
//! Little-endian. A record whose checksum does not match was torn, or belongs to a previous object
//! in this place, and is ignored.

use format::crc32c;

/// Bytes of the record header.
const HEAD: usize = 8;

/// Payload of a record.
pub trait Payload: Sized {
    /// Its size in bytes; with the header it divides a page.
    const BYTES: usize;

    /// Serialises it.
    fn put(&self, bytes: &mut [u8]);

    /// Deserialises it.
    fn get(bytes: &[u8]) -> Self;
}

impl<const FIGURES: usize> Payload for [f32; FIGURES] {
    const BYTES: usize = 4 * FIGURES;

    fn put(&self, bytes: &mut [u8]) {
        for (value, place) in self.iter().zip(bytes.chunks_exact_mut(4)) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    fn get(bytes: &[u8]) -> Self {
        std::array::from_fn(|index| f32::from_le_bytes(word(bytes, 4 * index)))
    }
}

/// Size of a record in bytes.
pub const fn record_bytes<T: Payload>() -> usize {
    HEAD + T::BYTES
}

fn checksum(object: u32, record: &[u8]) -> u32 {
    let mut text = object.to_le_bytes().to_vec();
    text.extend(&record[..4]);
    text.extend(&record[HEAD..]);
    crc32c(&text)
}

fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

/// Encodes the record of an object's step.
pub fn encode<T: Payload>(object: u32, step: u32, kept: &T) -> Vec<u8> {
    let mut record = vec![0; record_bytes::<T>()];
    record[..4].copy_from_slice(&step.to_le_bytes());
    kept.put(&mut record[HEAD..]);
    let checksum = checksum(object, &record);
    record[4..HEAD].copy_from_slice(&checksum.to_le_bytes());
    record
}

/// Decodes the record of an object's step, if it is valid.
pub fn decode<T: Payload>(object: u32, step: u32, record: &[u8]) -> Option<T> {
    (step_of(object, record)? == step).then(|| T::get(&record[HEAD..]))
}

/// The step of an object's valid record.
pub fn step_of(object: u32, record: &[u8]) -> Option<u32> {
    let right = u32::from_le_bytes(word(record, 4)) == checksum(object, record);
    right.then(|| u32::from_le_bytes(word(record, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::series::Values;

    #[test]
    fn record_is_decoded_only_by_its_object_and_if_valid() {
        let values: Values =
            std::array::from_fn(|index| [1.0, 0.0, -2.5, f32::MAX, 1e-9][index % 5]);
        let record = encode(7, 1000, &values);
        assert_eq!(record.len(), 64);
        assert_eq!(encode(7, 1000, &[0f32; 6]).len(), 32);
        assert_eq!(decode(7, 1000, &record), Some(values));
        assert_eq!(step_of(7, &record), Some(1000));
        assert_eq!(decode::<Values>(8, 1000, &record), None);
        assert_eq!(decode::<Values>(7, 1001, &record), None);
        for bit in 0..record.len() * 8 {
            let mut wrong = record.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode::<Values>(7, 1000, &wrong), None, "bit {bit}");
        }
        assert_eq!(step_of(0, &[0; 64]), None);
        // A partly written page.
        let mut torn = [0; 64];
        torn[..32].copy_from_slice(&record[..32]);
        assert_eq!(decode::<Values>(7, 1000, &torn), None);
    }
}
