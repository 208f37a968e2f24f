//! A step of an object in the file: 32 bytes, which never lie in two pages. Pure.
//!
//! | bytes | |
//! | --- | --- |
//! | 0..4 | the step's number: seconds since 1970 by the ring's step |
//! | 4..8 | CRC32C of the object's number, the step's and the values |
//! | 8..32 | six values, as IEEE 754 binary32 |
//!
//! All little-endian. What does not match its checksum was torn, or belongs to an object that had this place before: it
//! is not there.

use super::series::{SERIES_MAX, Values};
use format::crc32c;

/// Bytes of a record.
pub const RECORD: usize = 8 + 4 * SERIES_MAX;

fn checksum(object: u32, record: &[u8; RECORD]) -> u32 {
    let mut text = [0; RECORD];
    text[..4].copy_from_slice(&object.to_le_bytes());
    text[4..8].copy_from_slice(&record[..4]);
    text[8..].copy_from_slice(&record[8..]);
    crc32c(&text)
}

fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

/// The record of an object's step.
pub fn encode(object: u32, step: u32, values: &Values) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&step.to_le_bytes());
    for (value, place) in values.iter().zip(record[8..].chunks_exact_mut(4)) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    let checksum = checksum(object, &record);
    record[4..8].copy_from_slice(&checksum.to_le_bytes());
    record
}

/// The values of an object's step, if this is its record and whole.
pub fn decode(object: u32, step: u32, record: &[u8; RECORD]) -> Option<Values> {
    let right = u32::from_le_bytes(word(record, 0)) == step
        && u32::from_le_bytes(word(record, 4)) == checksum(object, record);
    let value = |index: usize| f32::from_le_bytes(word(record, 8 + 4 * index));
    right.then(|| std::array::from_fn(value))
}

/// The step that a whole record of an object is of.
pub fn step_of(object: u32, record: &[u8; RECORD]) -> Option<u32> {
    let step = u32::from_le_bytes(word(record, 0));
    decode(object, step, record).map(|_| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_by_whom_it_is_of_and_only_whole() {
        let values = [1.0, 0.0, -2.5, f32::MAX, 3.0, 1e-9];
        let record = encode(7, 1000, &values);
        assert_eq!(decode(7, 1000, &record), Some(values));
        assert_eq!(step_of(7, &record), Some(1000));
        assert_eq!(decode(8, 1000, &record), None);
        assert_eq!(decode(7, 1001, &record), None);
        for bit in 0..RECORD * 8 {
            let mut wrong = record;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(7, 1000, &wrong), None, "bit {bit}");
        }
        assert_eq!(step_of(0, &[0; RECORD]), None);
        // As a page of which a part was written.
        let mut torn = [0; RECORD];
        torn[..16].copy_from_slice(&record[..16]);
        assert_eq!(decode(7, 1000, &torn), None);
    }
}
