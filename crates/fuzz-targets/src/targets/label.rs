//! A label (superblock) as read from a drive: header, features, checksum.

use crate::memory::bounded;
use format::{Label, LabelError, MAX_DESCRIPTION, crc32c};

/// JSON values of two bytes take many times that in memory; a compressed description may be longer than
/// the label.
fn limit(bytes: &[u8]) -> usize {
    let is_packed = bytes.get(32).is_some_and(|features| features & 2 != 0);
    let description = if is_packed { MAX_DESCRIPTION } else { 0 };
    (64 << 10) + 128 * (bytes.len() + description)
}

fn decode(bytes: &[u8]) {
    let written = bounded(limit(bytes), || Label::decode(bytes));
    let read = bounded(limit(bytes), || Label::decode_to_read(bytes));
    match written {
        Ok(label) => {
            assert_eq!(
                read.as_ref(),
                Ok(&label),
                "a label that may be written may be read"
            );
            match label.encode() {
                Ok(again) => assert_eq!(Label::decode(&again), Ok(label)),
                Err(failed) => assert!(matches!(failed, LabelError::TooLong(..))),
            }
        }
        Err(LabelError::None) => assert_eq!(read, Err(LabelError::None)),
        Err(_) => {}
    }
}

pub(crate) fn run(data: &[u8]) {
    decode(data);
    if data.len() >= 128 {
        let mut bytes = data.to_vec();
        bytes[..7].copy_from_slice(b"CONVECT");
        let length = (data.len() - 128) as u32;
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        let crc = crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        decode(&bytes);
    }
}
