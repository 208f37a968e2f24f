//! The parameter list: sources, targets and ranges of a copy.

use crate::fields::{u8_at, u16_at, u24_at, u32_at, u64_at};
use crate::sense::Sense;

/// Limits that RECEIVE COPY RESULTS and VPD 8Fh tell: longest list, in bytes, and what is in it.
pub(super) const LIST_MAX: u64 = 64 << 10;
pub(super) const TARGETS_MAX: usize = 16;
pub(super) const SEGMENTS_MAX: usize = 64;
/// Longest segment, in bytes.
pub(super) const SEGMENT_MAX: u64 = 64 << 20;

const HEAD_LEN: usize = 16;
const TARGET_LEN: usize = 32;
const SEGMENT_LEN: usize = 28;
/// Identification descriptor, and the segment from block to block.
pub(super) const IDENTIFICATION: u8 = 0xe4;
pub(super) const BLOCK_TO_BLOCK: u8 = 0x02;

/// A unit, named by one of its designators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named {
    /// Designator type.
    pub kind: u8,
    pub value: Vec<u8>,
    /// Bytes of a logical block, as the host believes.
    pub block_size: u64,
}

/// One piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub source: usize,
    pub destination: usize,
    /// Blocks of the source, or of the destination (DC).
    pub count: u64,
    pub counts_destination: bool,
    pub source_lba: u64,
    pub destination_lba: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct List {
    pub id: u8,
    /// The list identifier means nothing, and no result is kept.
    pub no_result: bool,
    pub targets: Vec<Named>,
    pub segments: Vec<Segment>,
}

fn target(entry: &[u8]) -> Result<Named, Sense> {
    if entry[0] != IDENTIFICATION {
        return Err(Sense::UNSUPPORTED_TARGET_DESCRIPTOR);
    }
    // LU ID TYPE and NUL mean nothing since SPC-4.
    let device_type = entry[1] & 0x1f;
    let (association, kind) = (entry[5] >> 4 & 0x03, entry[5] & 0x0f);
    let len = usize::from(entry[7]);
    if device_type != 0 || association != 0 || len > 20 {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    Ok(Named {
        kind,
        value: entry[8..8 + len].to_vec(),
        block_size: u64::from(u24_at(entry, 29)),
    })
}

fn segment(entry: &[u8]) -> Segment {
    Segment {
        counts_destination: entry[1] & 0x02 != 0,
        source: usize::from(u16_at(entry, 4)),
        destination: usize::from(u16_at(entry, 6)),
        count: u64::from(u16_at(entry, 10)),
        source_lba: u64_at(entry, 12),
        destination_lba: u64_at(entry, 20),
    }
}

/// Segments, which say themselves how long they are.
fn segments(mut list: &[u8]) -> Result<Vec<Segment>, Sense> {
    let mut segments = Vec::new();
    while !list.is_empty() {
        if list[0] != BLOCK_TO_BLOCK {
            return Err(Sense::UNSUPPORTED_SEGMENT_DESCRIPTOR);
        }
        let len = 4 + usize::from(u16_at(list, 2));
        if len != SEGMENT_LEN || list.len() < len {
            return Err(Sense::INVALID_FIELD_IN_LIST);
        }
        if segments.len() == SEGMENTS_MAX {
            return Err(Sense::TOO_MANY_SEGMENTS);
        }
        segments.push(segment(list));
        list = &list[len..];
    }
    Ok(segments)
}

/// Descriptors of targets and segments, one after the other, with nothing inline.
fn descriptors(
    body: &[u8],
    (targets_len, segments_len): (usize, usize),
) -> Result<(Vec<Named>, Vec<Segment>), Sense> {
    if !targets_len.is_multiple_of(TARGET_LEN) {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    if targets_len > TARGETS_MAX * TARGET_LEN {
        return Err(Sense::TOO_MANY_TARGETS);
    }
    if segments_len > SEGMENTS_MAX * SEGMENT_LEN {
        return Err(Sense::TOO_MANY_SEGMENTS);
    }
    let targets = body
        .get(..targets_len)
        .ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    let rest = body.get(targets_len..targets_len + segments_len);
    let targets: Result<_, _> = targets.chunks_exact(TARGET_LEN).map(target).collect();
    Ok((
        targets?,
        segments(rest.ok_or(Sense::PARAMETER_LIST_LENGTH)?)?,
    ))
}

/// Length of the head of EXTENDED COPY(LID4)'s list (SPC-4 table 126), and of the header descriptor in it.
const LONG_HEAD_LEN: usize = 48;
const HEADER_DESCRIPTOR_LEN: u16 = 32;

/// Reads the whole list of EXTENDED COPY(LID4): its identifier, targets and segments.
pub(super) fn parse_long(list: &[u8]) -> Result<(u32, Vec<Named>, Vec<Segment>), Sense> {
    if list.len() < LONG_HEAD_LEN {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let is_known = list[0] == 0x01 && u16_at(list, 2) == HEADER_DESCRIPTOR_LEN && list[16] == 0xff;
    if !is_known {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    if u16_at(list, 46) != 0 {
        return Err(Sense::INLINE_DATA_LENGTH);
    }
    let lengths = (usize::from(u16_at(list, 42)), usize::from(u16_at(list, 44)));
    let (targets, segments) = descriptors(&list[LONG_HEAD_LEN..], lengths)?;
    Ok((u32_at(list, 20), targets, segments))
}

/// Reads the whole list of EXTENDED COPY(LID1).
pub(super) fn parse(list: &[u8]) -> Result<List, Sense> {
    if list.len() < HEAD_LEN {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let usage = u8_at(list, 1) >> 3 & 0x03;
    let id = list[0];
    let no_result = usage == 3;
    if usage == 1 || no_result && id != 0 {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    let targets_len = usize::from(u16_at(list, 2));
    let segments_len = u32_at(list, 8) as usize;
    if u32_at(list, 12) != 0 {
        return Err(Sense::INLINE_DATA_LENGTH);
    }
    let (targets, segments) = descriptors(&list[HEAD_LEN..], (targets_len, segments_len))?;
    Ok(List {
        id,
        no_result,
        targets,
        segments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(targets: usize, segments: usize) -> Vec<u8> {
        let mut list = vec![0; HEAD_LEN];
        list[2..4].copy_from_slice(&((targets * TARGET_LEN) as u16).to_be_bytes());
        list[8..12].copy_from_slice(&((segments * SEGMENT_LEN) as u32).to_be_bytes());
        for _ in 0..targets {
            let mut entry = [0; TARGET_LEN];
            entry[0] = IDENTIFICATION;
            entry[5] = 3;
            entry[7] = 16;
            list.extend(entry);
        }
        for _ in 0..segments {
            let mut entry = [0; SEGMENT_LEN];
            entry[0] = BLOCK_TO_BLOCK;
            entry[3] = 0x18;
            list.extend(entry);
        }
        list
    }

    #[test]
    fn limits_and_lengths_are_kept() {
        let read = parse(&list(2, 3)).unwrap();
        assert_eq!((read.targets.len(), read.segments.len()), (2, 3));
        assert!(parse(&list(TARGETS_MAX, SEGMENTS_MAX)).is_ok());
        for (list, sense) in [
            (list(TARGETS_MAX + 1, 1), Sense::TOO_MANY_TARGETS),
            (list(1, SEGMENTS_MAX + 1), Sense::TOO_MANY_SEGMENTS),
            (list(1, 1)[..60].to_vec(), Sense::PARAMETER_LIST_LENGTH),
            (vec![0; 15], Sense::PARAMETER_LIST_LENGTH),
        ] {
            assert_eq!(parse(&list), Err(sense));
        }
    }
}
