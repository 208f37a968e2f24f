//! A label as it lies on a drive: header, features, checksum.
#![no_main]

use convect_fuzz::bounded;
use format::{Label, LabelError, crc32c};
use libfuzzer_sys::fuzz_target;

/// A label has at most 1 MiB; values of two bytes in JSON take some times that in memory.
fn limit(bytes: &[u8]) -> usize {
    (64 << 10) + 128 * bytes.len()
}

fn decode(bytes: &[u8]) {
    let written = bounded(limit(bytes), || Label::decode(bytes));
    let read = bounded(limit(bytes), || Label::decode_to_read(bytes));
    match written {
        Ok(label) => {
            assert_eq!(read.as_ref(), Ok(&label), "what may be written may be read");
            match label.encode() {
                Ok(again) => assert_eq!(Label::decode(&again), Ok(label)),
                Err(failed) => assert!(matches!(failed, LabelError::TooLong(_))),
            }
        }
        Err(LabelError::None) => assert_eq!(read, Err(LabelError::None)),
        Err(_) => {}
    }
}

fuzz_target!(|data: &[u8]| {
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
});
