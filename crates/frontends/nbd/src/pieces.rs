//! Long requests without data (discard, zero, block status), split into pieces.
//!
//! A request of 28 bytes may cover 4 GiB. It is submitted piece by piece, so that a session uses a
//! bounded share of the device's time, other requests can interleave, and a disconnected peer's
//! request is abandoned.

use crate::batch::EXTENTS_MAX;
use crate::flight::Tag;
use block::{OpFlags, OpKind, StatusExtent};
use std::ops::Range;

/// Maximum size of a piece, in bytes; pieces end at multiples of it.
const PIECE: u64 = 64 << 20;
/// The same for zeroes that keep their allocation, which are written.
const PIECE_WRITTEN: u64 = 4 << 20;
/// Unit of charges, in bytes.
const UNIT: u64 = 512;
/// Maximum charge of a session's submitted pieces: 16 of the largest.
pub(crate) const CHARGES_MAX: u64 = 16 * PIECE / UNIT;

/// One operation of a long request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub tag: Tag,
    pub kind: OpKind,
    pub flags: OpFlags,
    pub range: Range<u64>,
}

/// The part of a request, or of one context of a block status, that was not submitted yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pieces {
    pub slot: usize,
    /// Index of the context.
    pub part: usize,
    pub kind: OpKind,
    pub flags: OpFlags,
    pub range: Range<u64>,
}

impl Pieces {
    fn longest(&self) -> u64 {
        match self.kind == OpKind::WriteZeroes && self.flags.no_unmap {
            true => PIECE_WRITTEN,
            false => PIECE,
        }
    }

    fn next(&self) -> Range<u64> {
        let longest = self.longest();
        let end = (self.range.start / longest + 1) * longest;
        self.range.start..end.min(self.range.end)
    }

    /// Charge of the next piece against the session's limit.
    pub(crate) fn charge(&self) -> u32 {
        let next = self.next();
        ((next.end - next.start) * (PIECE / self.longest()) / UNIT) as u32
    }

    /// Whether it queries status: then one piece at a time.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.kind, OpKind::Status | OpKind::Changed(_))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Removes the next piece.
    pub(crate) fn take(&mut self) -> Piece {
        let (range, charge) = (self.next(), self.charge());
        self.range.start = range.end;
        Piece {
            tag: Tag {
                slot: self.slot,
                part: self.part,
                charge,
            },
            kind: self.kind,
            flags: self.flags,
            range,
        }
    }
}

/// Block status collected for one context.
#[derive(Default)]
pub(crate) struct Found {
    /// Extents from the start of the request on, equal neighbours merged.
    pub extents: Vec<StatusExtent>,
    /// A single extent was requested.
    pub one: bool,
    /// Start of the unknown rest.
    pub at: u64,
    /// Remaining pieces while a query is submitted.
    pub rest: Option<Pieces>,
}

impl Found {
    /// Adds the result of the submitted query; returns the remaining pieces. A result may be
    /// shorter than its query.
    pub(crate) fn add(&mut self, answer: &[StatusExtent]) -> Option<Pieces> {
        let mut rest = self.rest.take()?;
        let before = self.at;
        for extent in answer {
            let len = extent.len.min(rest.range.end - self.at);
            self.at += len;
            match self.extents.last_mut() {
                Some(last) if last.state == extent.state => last.len += len,
                _ if len > 0 => self.extents.push(StatusExtent { len, ..*extent }),
                _ => {}
            }
        }
        let most = if self.one { 1 } else { EXTENTS_MAX };
        let enough = self.extents.len() > most || self.at == before;
        rest.range.start = self.at;
        (!enough && !rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::AllocationState;

    const MIB: u64 = 1 << 20;

    fn pieces(kind: OpKind, no_unmap: bool, range: Range<u64>) -> Pieces {
        let flags = OpFlags {
            fua: false,
            no_unmap,
        };
        Pieces {
            slot: 3,
            part: 0,
            kind,
            flags,
            range,
        }
    }

    fn cut(mut pieces: Pieces) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while !pieces.is_empty() {
            let range = pieces.take().range;
            all.push((range.start, range.end));
        }
        all
    }

    #[test]
    fn long_range_is_split_at_multiples_of_the_piece_size() {
        let long = pieces(OpKind::Discard, false, 60 * MIB..130 * MIB);
        let expected = [(60, 64), (64, 128), (128, 130)].map(|(a, b)| (a * MIB, b * MIB));
        assert_eq!(cut(long), expected);
        let written = pieces(OpKind::WriteZeroes, true, MIB..9 * MIB);
        let expected = [(1, 4), (4, 8), (8, 9)].map(|(a, b)| (a * MIB, b * MIB));
        assert_eq!(cut(written), expected);
    }

    #[test]
    fn written_zeroes_are_charged_like_long_pieces() {
        let long = pieces(OpKind::Discard, false, 0..4096 * MIB);
        let written = pieces(OpKind::WriteZeroes, true, 0..4096 * MIB);
        assert_eq!(long.charge(), written.charge());
        assert_eq!(u64::from(long.charge()) * 16, CHARGES_MAX);
        let short = pieces(OpKind::Discard, false, 512..1024);
        assert_eq!(short.charge(), 1);
    }

    fn extent(len: u64, state: AllocationState) -> StatusExtent {
        StatusExtent { len, state }
    }

    fn found(one: bool) -> Found {
        Found {
            one,
            at: 4096,
            rest: Some(pieces(OpKind::Status, false, 64 * MIB..256 * MIB)),
            ..Found::default()
        }
    }

    #[test]
    fn next_query_begins_at_the_end_of_a_short_result() {
        let mut found = found(false);
        let rest = found.add(&[extent(4096, AllocationState::Hole)]).unwrap();
        assert_eq!(rest.range, 8192..256 * MIB);
        found.rest = Some(rest);
        let all = found.add(&[extent(u64::MAX, AllocationState::Hole)]);
        assert_eq!(all, None);
        assert_eq!(
            found.extents,
            [extent(256 * MIB - 4096, AllocationState::Hole)]
        );
    }

    #[test]
    fn query_ends_when_the_reply_is_full_or_without_progress() {
        let states = [AllocationState::Hole, AllocationState::Data];
        let two = states.map(|state| extent(4096, state));
        assert_eq!(found(true).add(&two), None);
        assert!(found(false).add(&two).is_some());
        let many: Vec<_> = (0..=EXTENTS_MAX)
            .map(|n| extent(512, states[n % 2]))
            .collect();
        assert_eq!(found(false).add(&many), None);
        assert_eq!(found(false).add(&[]), None);
    }
}
