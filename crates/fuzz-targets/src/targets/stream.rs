//! A snapshot stream, whole and in pieces of seven bytes; as it is, and with correct checksums.

use crate::memory::bounded;
use format::crc32c;
use stream::{Decoder, Encoder, Record};

/// Decodes up to the first error, and checks what the decoder promises of positions.
fn records(data: &[u8], piece: usize) -> Vec<Record> {
    let mut decoder = Decoder::default();
    let mut records = Vec::new();
    let (mut size, mut position) = (0, 0);
    for piece in data.chunks(piece) {
        decoder.push(piece);
        while let Ok(Some(record)) = decoder.next_record() {
            let range = match &record {
                Record::Begin(begin) => {
                    (size, position) = (begin.size, begin.start);
                    None
                }
                Record::Data { offset, bytes } => Some((*offset, bytes.len() as u64)),
                Record::Zeroes { offset, len } => Some((*offset, *len)),
                _ => None,
            };
            if let Some((offset, len)) = range {
                assert!(offset >= position && len > 0 && offset + len <= size);
                position = offset + len;
            }
            assert_eq!(decoder.position(), position);
            records.push(record);
        }
    }
    records
}

/// The records encoded again.
fn written(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(Record::Begin(begin)) = records.first() else {
        return out;
    };
    let mut encoder = Encoder::begin(begin, &mut out);
    for record in &records[1..] {
        match record {
            Record::Data { offset, bytes } => encoder.data(*offset, bytes, &mut out),
            Record::Zeroes { offset, len } => encoder.zeroes(*offset, *len, &mut out),
            Record::End(totals) => {
                encoder.end(totals.read, &mut out);
                return out;
            }
            Record::Failed(why) => {
                encoder.failed(why, &mut out);
                return out;
            }
            Record::Begin(_) => unreachable!("a stream begins once"),
        }
    }
    out
}

/// The same bytes with a valid magic number, and with the sequence numbers and checksums of all records
/// correct.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    bytes.resize(data.len().max(12), 0);
    bytes[..8].copy_from_slice(b"CVSTREAM");
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    let mut summed = bytes[..12].to_vec();
    let mut at = 12;
    for sequence in 0u64.. {
        if at + 20 > bytes.len() {
            break;
        }
        bytes[at + 8..at + 16].copy_from_slice(&sequence.to_le_bytes());
        let length = u32::from_le_bytes([4, 5, 6, 7].map(|byte| bytes[at + byte])) as usize;
        let end = (at + 20).saturating_add(length);
        if end > bytes.len() {
            break;
        }
        summed.extend(&bytes[at..at + 16]);
        summed.extend(&bytes[at + 20..end]);
        bytes[at + 16..at + 20].copy_from_slice(&crc32c(&summed).to_le_bytes());
        at = end;
    }
    bytes
}

pub(crate) fn run(data: &[u8]) {
    for bytes in [data.to_vec(), sealed(data)] {
        let found = bounded(256 << 10, || records(&bytes, bytes.len().max(1)));
        assert_eq!(records(&bytes, 7), found);
        let again = written(&found);
        let failed = matches!(found.last(), Some(Record::Failed(_)));
        assert!(failed || bytes.starts_with(&again), "{found:?}");
    }
}
