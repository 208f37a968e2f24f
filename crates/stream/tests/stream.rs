//! A stream is taken whole and in order, or not at all.

use stream::{Begin, DATA_MAX, Decoder, Encoder, Record, StreamError, Token, Totals};
use units::{PoolId, SnapshotId};

const MIB: u64 = 1 << 20;
/// Bytes of the prologue, of a record's header, and of a whole record of `data(4096)`.
const PROLOGUE: usize = 12;
const HEADER: usize = 20;
const BLOCK_RECORD: usize = HEADER + 8 + 4096;

fn id(epoch: u32) -> SnapshotId {
    SnapshotId {
        pool: PoolId(7 << 100),
        epoch,
        created_s: 1_800_000_000,
    }
}

fn begin() -> Begin {
    Begin {
        pool: PoolId(9),
        to: id(5),
        from: Some(id(3)),
        size: 8 * MIB,
        start: 0,
        lba_size: 512,
        volume: "vm1".to_owned(),
        snapshot: "b".to_owned(),
    }
}

fn block(seed: u8) -> Vec<u8> {
    (0..4096u32).map(|at| (at as u8) ^ seed).collect()
}

/// A stream, and where each of its records ends.
fn sent(begin: &Begin) -> (Vec<u8>, Vec<usize>) {
    let mut out = Vec::new();
    let mut ends = Vec::new();
    let mut encoder = Encoder::begin(begin, &mut out);
    ends.push(out.len());
    for number in 0..3 {
        encoder.data(u64::from(number) * 8192, &block(number), &mut out);
        ends.push(out.len());
    }
    encoder.zeroes(MIB, 2 * MIB, &mut out);
    ends.push(out.len());
    encoder.data(4 * MIB, &vec![3; DATA_MAX], &mut out);
    ends.push(out.len());
    encoder.end(MIB + 3 * 4096, &mut out);
    ends.push(out.len());
    (out, ends)
}

/// What a receiver takes of some bytes, pushed in pieces, and how it ends.
fn received(bytes: &[u8], piece: usize) -> (Vec<Record>, Result<(), StreamError>) {
    let mut decoder = Decoder::default();
    let mut records = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        loop {
            match decoder.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(failed) => return (records, Err(failed)),
            }
        }
    }
    let end = decoder.end();
    (records, end)
}

fn is_whole(records: &[Record]) -> bool {
    records
        .iter()
        .any(|record| matches!(record, Record::End(_)))
}

#[test]
fn a_stream_is_read_as_it_was_written_in_whatever_pieces_it_comes() {
    for from in [None, Some(id(3))] {
        let begin = Begin { from, ..begin() };
        let (bytes, ends) = sent(&begin);
        for piece in [1, 7, 4096, bytes.len()] {
            let (records, end) = received(&bytes, piece);
            assert_eq!(end, Ok(()));
            assert_eq!(records.len(), ends.len());
            assert_eq!(records[0], Record::Begin(begin.clone()));
            let data = Record::Data {
                offset: 16384,
                bytes: block(2),
            };
            assert_eq!(records[3], data);
            let zeroes = Record::Zeroes {
                offset: MIB,
                len: 2 * MIB,
            };
            assert_eq!(records[4], zeroes);
            let totals = Totals {
                data: MIB + 3 * 4096,
                zeroes: 2 * MIB,
                read: MIB + 3 * 4096,
            };
            assert_eq!(records[6], Record::End(totals));
        }
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_has_no_end() {
    let (bytes, ends) = sent(&begin());
    let near = ends
        .iter()
        .flat_map(|end| [end - 1, *end, end + 1, end + HEADER]);
    for length in near.chain(0..200).filter(|length| *length < bytes.len()) {
        let (records, end) = received(&bytes[..length], 5000);
        let whole = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(end, Err(StreamError::Cut(whole as u64)), "{length} bytes");
        assert_eq!(records.len(), whole);
        assert!(!is_whole(&records));
    }
}

#[test]
fn no_byte_can_be_another() {
    let (bytes, ends) = sent(&begin());
    // All of what describes, and some of the data.
    let described = ends.iter().flat_map(|end| *end..*end + HEADER + 16);
    let some = (0..bytes.len()).step_by(997);
    for at in (0..ends[0]).chain(described).chain(some) {
        if at >= bytes.len() {
            continue;
        }
        for bit in [0, 3, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let (records, end) = received(&damaged, 8192);
            assert!(end.is_err(), "byte {at}, bit {bit}");
            assert!(!is_whole(&records), "byte {at}, bit {bit}");
            let before = ends.iter().filter(|end| **end <= at).count();
            assert!(
                records.len() <= before,
                "byte {at}: a damaged record counts"
            );
        }
    }
}

#[test]
fn records_are_taken_in_their_order_and_once() {
    let (bytes, ends) = sent(&begin());
    let second = ends[0]..ends[1];
    let third = ends[1]..ends[2];
    assert_eq!(second.len(), BLOCK_RECORD);
    let (before, after) = (&bytes[..ends[0]], &bytes[ends[2]..]);
    let (second, third) = (&bytes[second], &bytes[third]);
    for (what, parts, whole) in [
        ("swapped", [before, third, second, after], 1),
        ("repeated", [before, second, second, after], 2),
        ("left out", [before, second, after, &[]], 2),
    ] {
        let (records, end) = received(&parts.concat(), 4096);
        assert_eq!(end, Err(StreamError::Damaged(whole)), "{what}");
        assert_eq!(records.len(), whole as usize, "{what}");
    }
    // With a number that fits, what came before tells it apart.
    let mut renumbered = second.to_vec();
    renumbered[8] = 2;
    let parts = [before, second, &renumbered, after];
    assert_eq!(
        received(&parts.concat(), 4096).1,
        Err(StreamError::Damaged(2))
    );
    // So it is with a record of another stream.
    let (other, _) = sent(&Begin {
        to: id(6),
        ..begin()
    });
    let mixed = [before, &other[ends[0]..]].concat();
    assert_eq!(received(&mixed, 4096).1, Err(StreamError::Damaged(1)));
    // And nothing comes behind the end.
    let twice = [&bytes[..], &bytes[..]].concat();
    assert_eq!(received(&twice, 4096).1, Err(StreamError::Trailing));
}

#[test]
fn what_other_versions_make_is_refused_by_name() {
    let (bytes, _) = sent(&begin());
    let mut version = bytes.clone();
    version[8] = 2;
    assert_eq!(received(&version, 64).1, Err(StreamError::Version(2)));
    // A bit of the features, with the right checksum.
    let end = sent(&begin()).1[0];
    let mut features = bytes[..end].to_vec();
    features[PROLOGUE + HEADER + 2] = 1;
    let summed = [&features[..PROLOGUE + 16], &features[PROLOGUE + HEADER..]].concat();
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &summed) as u32;
    features[PROLOGUE + 16..PROLOGUE + HEADER].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(
        received(&features, 64).1,
        Err(StreamError::Features(1 << 16))
    );
    let other = b"PK\x03\x04 and so on";
    assert_eq!(received(other, 64).1, Err(StreamError::NoStream));
}

#[test]
fn what_is_whole_and_cannot_be_is_refused() {
    type Change = fn(&mut Begin);
    let changes: [(&str, Change); 9] = [
        ("size", |begin| begin.size = 4096),
        ("size", |begin| begin.size = u64::MAX - 4095),
        ("size", |begin| begin.size += 512),
        ("starts", |begin| begin.start = begin.size + 4096),
        ("starts", |begin| begin.start = 512),
        ("block size", |begin| begin.lba_size = 1),
        ("name", |begin| begin.snapshot = "../b".to_owned()),
        ("name", |begin| begin.snapshot = "x".repeat(65)),
        ("itself", |begin| begin.from = Some(begin.to)),
    ];
    for (said, change) in changes {
        let mut begin = begin();
        change(&mut begin);
        let mut out = Vec::new();
        Encoder::begin(&begin, &mut out);
        match received(&out, 64).1 {
            Err(StreamError::Wrong(0, why)) => assert!(why.contains(said), "{why}: {said}"),
            // Too long for its record.
            Err(StreamError::Damaged(0)) if begin.snapshot.len() > 64 => {}
            other => panic!("{said}: {other:?}"),
        }
    }
}

#[test]
fn ranges_are_of_whole_blocks_in_order_and_within_the_volume() {
    let size = begin().size;
    let bad = [
        (0, 0),
        (512, 4096),
        (0, 512),
        (size, 4096),
        (0, size + 4096),
    ];
    let far = [(u64::MAX - 4095, 4096), (4096, u64::MAX - 4095)];
    for (offset, len) in bad.into_iter().chain(far) {
        let mut out = Vec::new();
        let mut encoder = Encoder::begin(&begin(), &mut out);
        encoder.zeroes(offset, len, &mut out);
        let refused = received(&out, 64).1;
        let wrong = matches!(refused, Err(StreamError::Wrong(1, _)));
        assert!(wrong, "{offset} {len}: {refused:?}");
    }
    let late = Begin {
        start: 8192,
        ..begin()
    };
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(&late, &mut out);
    encoder.data(4096, &block(0), &mut out);
    let before = StreamError::Wrong(1, "its range is before the previous one");
    assert_eq!(received(&out, 64).1, Err(before));
}

#[test]
fn a_sender_that_cannot_go_on_says_why() {
    let mut out = Vec::new();
    let mut encoder = Encoder::begin(&begin(), &mut out);
    encoder.data(0, &block(0), &mut out);
    encoder.failed("the drive\x1b[2J is gone", &mut out);
    let (records, end) = received(&out, 100);
    assert_eq!(end, Ok(()));
    assert_eq!(
        records[2],
        Record::Failed("the drive[2J is gone".to_owned())
    );
    assert!(!is_whole(&records));
}

#[test]
fn a_record_that_promises_much_takes_no_memory() {
    let (bytes, ends) = sent(&begin());
    let mut long = bytes[..ends[0] + HEADER].to_vec();
    long[ends[0] + 4..ends[0] + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(received(&long, 64).1, Err(StreamError::Damaged(1)));
    assert_eq!(bytes[PROLOGUE], 1, "the first record's kind");
}

#[test]
fn a_token_survives_text_and_no_digit_can_be_another() {
    for from in [None, Some(id(3))] {
        let token = Token {
            to: id(5),
            from,
            done: 3 * MIB,
        };
        let text = token.to_string();
        assert_eq!(text.parse(), Ok(token));
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(other.parse::<Token>(), Err(StreamError::Token), "{at}");
        }
    }
    for bad in ["", "zz", "é"] {
        assert_eq!(bad.parse::<Token>(), Err(StreamError::Token), "{bad}");
    }
}
