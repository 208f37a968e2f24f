//! The page of third-party copies (VPD 8Fh, SPC-4 7.8.17; SBC-3 6.6.6 for block devices).

use super::offload::{RANGES_MAX, TRANSFER_MAX};
use super::parameters::{
    BLOCK_TO_BLOCK, IDENTIFICATION, LIST_MAX, SEGMENT_MAX, SEGMENTS_MAX, TARGETS_MAX,
};
use super::tokens::{CHANGE_VULNERABLE, TIMEOUT_MAX_S, TIMEOUT_S, ZEROES};
use crate::nexus::Nexus;
use crate::table::ROWS;

/// Optimal transfer length for hosts, in bytes.
const OPTIMAL: u64 = 64 << 20;
const EXTENDED_COPY: u8 = 0x83;
const RECEIVE_COPY: u8 = 0x84;

/// A descriptor, filled up to a multiple of four bytes.
fn descriptor(kind: u16, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(4), 0);
    let mut all = kind.to_be_bytes().to_vec();
    all.extend((body.len() as u16).to_be_bytes());
    all.extend(body);
    all
}

/// Limits of tokens (0000h).
fn limits(block_size: u64) -> Vec<u8> {
    let mut body = vec![0; 6];
    body.extend((RANGES_MAX as u16).to_be_bytes());
    body.extend(TIMEOUT_MAX_S.to_be_bytes());
    body.extend(TIMEOUT_S.to_be_bytes());
    body.extend((TRANSFER_MAX / block_size).to_be_bytes());
    body.extend((OPTIMAL / block_size).to_be_bytes());
    body
}

/// The commands that there are (0001h).
fn commands() -> Vec<u8> {
    let mut list = Vec::new();
    for opcode in [EXTENDED_COPY, RECEIVE_COPY] {
        let rows = ROWS.iter().filter(|row| row.opcode == opcode);
        let actions: Vec<u8> = rows.filter_map(|row| row.service).collect();
        list.extend([opcode, actions.len() as u8]);
        list.extend(actions);
    }
    let mut body = vec![list.len() as u8];
    body.extend(list);
    body
}

/// Limits of EXTENDED COPY's parameter list (0004h).
fn parameters() -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend((TARGETS_MAX as u16).to_be_bytes());
    body.extend((SEGMENTS_MAX as u16).to_be_bytes());
    body.extend((LIST_MAX as u32).to_be_bytes());
    body.resize(28, 0);
    body
}

/// How long tokens live (0106h); they are for this process alone.
fn features() -> Vec<u8> {
    let mut body = vec![0; 44];
    body[12..16].copy_from_slice(&1u32.to_be_bytes());
    body[16..20].copy_from_slice(&TIMEOUT_MAX_S.to_be_bytes());
    body[20..24].copy_from_slice(&TIMEOUT_MAX_S.to_be_bytes());
    body
}

/// Types of tokens (0108h), each with whether it comes in and goes out.
fn kinds() -> Vec<u8> {
    let entry = |kind: u32, way: u8| {
        let mut entry = vec![0; 64];
        entry[..4].copy_from_slice(&kind.to_be_bytes());
        entry[4] = way;
        entry
    };
    // TOKEN_IN and TOKEN_OUT; the token of zeroes is never created.
    let entries = [entry(CHANGE_VULNERABLE, 0x03), entry(ZEROES, 0x02)].concat();
    let mut body = vec![0, 0];
    body.extend((entries.len() as u16).to_be_bytes());
    body.extend(entries);
    body
}

/// General limits (8001h).
fn general(block_size: u64) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(128u32.to_be_bytes());
    body.extend(16u32.to_be_bytes());
    body.extend((SEGMENT_MAX as u32).to_be_bytes());
    body.push(block_size.ilog2() as u8);
    body.resize(32, 0);
    body
}

/// The page's descriptors, in the order of their types.
pub(crate) fn page(nexus: &Nexus) -> Vec<u8> {
    let size = nexus.block_size();
    [
        descriptor(0x0000, limits(size)),
        descriptor(0x0001, commands()),
        descriptor(0x0004, parameters()),
        descriptor(0x0008, vec![2, BLOCK_TO_BLOCK, IDENTIFICATION]),
        descriptor(0x0106, features()),
        descriptor(0x0108, kinds()),
        descriptor(0x8001, general(size)),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_where_windows_looks_for_them() {
        let limits = descriptor(0, limits(512));
        assert_eq!((limits.len(), &limits[..4]), (36, &[0, 0, 0, 0x20][..]));
        assert_eq!(limits[10..12], [0, 64]);
        assert_eq!(limits[20..28], (TRANSFER_MAX / 512).to_be_bytes());
    }

    #[test]
    fn commands_are_those_of_the_table() {
        let actions = [
            4,
            0x00,
            0x01,
            0x10,
            0x11,
            RECEIVE_COPY,
            4,
            0x00,
            0x03,
            0x05,
            0x07,
        ];
        let expected = [&[12, EXTENDED_COPY][..], &actions].concat();
        assert_eq!(commands(), expected);
    }
}
