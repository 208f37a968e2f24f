//! Where a trace's requests go on one volume.

use crate::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use traces::{Request, SECTOR};
use units::{BLOCK, EXTENT};

/// Maximum bytes per request: what an NBD server has to accept.
const PIECE: u64 = 32 << 20;
/// Devices of a trace begin at multiples of this.
const ALIGN: u64 = 1 << 20;
/// Extents are found again by bits: of a trace that reaches further there would be too many.
const REACH: u64 = 64 << 40;

/// A part of a request, of whole blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// In bytes.
    pub offset: u64,
    /// In bytes.
    pub length: u32,
    pub write: bool,
}

/// The devices of a trace, one after the other on a volume.
#[derive(Debug)]
pub struct Layout {
    bases: BTreeMap<u16, u64>,
    bytes: u64,
}

/// A request's first byte and the one after its last, widened to whole blocks.
fn span(request: &Request) -> Option<Range<u64>> {
    let block = BLOCK as u64;
    let first = request.sector.checked_mul(SECTOR)?;
    let end = first.checked_add(u64::from(request.sectors) * SECTOR)?;
    Some(first / block * block..end.checked_next_multiple_of(block)?)
}

impl Layout {
    /// Of these requests.
    ///
    /// # Errors
    /// When they reach further than a volume.
    pub fn of(requests: &[Request]) -> Result<Self> {
        let mut ends = BTreeMap::<u16, u64>::new();
        for request in requests {
            let end = span(request).filter(|span| span.end <= REACH);
            let end = end.ok_or_else(|| {
                Failure::new(format!(
                    "a request of the trace goes to sector {}, beyond the 64 TiB that a replay may reach: its addresses \
                     may be in another unit",
                    request.sector
                ))
            })?;
            let known = ends.entry(request.device).or_default();
            *known = (*known).max(end.end);
        }
        let mut bytes = 0u64;
        let mut bases = BTreeMap::new();
        for (device, end) in ends {
            bases.insert(device, bytes);
            bytes += end.next_multiple_of(ALIGN);
        }
        Ok(Self { bases, bytes })
    }

    /// Bytes that a volume needs for all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn place(&self, request: &Request) -> Range<u64> {
        let base = self.bases.get(&request.device).copied().unwrap_or(0);
        let span = span(request).unwrap_or(0..0);
        base + span.start..base + span.end
    }

    /// Pieces of a request.
    pub fn pieces(&self, request: &Request) -> impl Iterator<Item = Piece> + use<> {
        let (Range { start, end }, write) = (self.place(request), request.write);
        (start..end)
            .step_by(PIECE as usize)
            .map(move |offset| Piece {
                offset,
                length: (end - offset).min(PIECE) as u32,
                write,
            })
    }

    /// Where requests go, by whole extents of 64 KiB: in order, what adjoins together.
    pub fn used(&self, requests: &[Request]) -> Vec<Range<u64>> {
        let unit = EXTENT as u64;
        let mut extents: Vec<Range<u64>> = requests
            .iter()
            .map(|request| self.place(request))
            .map(|place| place.start / unit * unit..place.end.next_multiple_of(unit))
            .filter(|place| !place.is_empty())
            .collect();
        extents.sort_unstable_by_key(|place| place.start);
        let mut used: Vec<Range<u64>> = Vec::new();
        for extent in extents {
            match used.last_mut().filter(|last| last.end >= extent.start) {
                Some(last) => last.end = last.end.max(extent.end),
                None => used.push(extent),
            }
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(device: u16, sector: u64, sectors: u32) -> Request {
        Request {
            at_us: 0,
            sector,
            sectors,
            device,
            write: false,
        }
    }

    #[test]
    fn devices_lie_one_after_the_other_and_requests_take_whole_blocks() {
        let requests = [request(7, 9, 1), request(2, 0, 8)];
        let layout = Layout::of(&requests).expect("in reach");
        let pieces: Vec<Piece> = layout.pieces(&requests[0]).collect();
        let piece = |offset, length| Piece {
            offset,
            length,
            write: false,
        };
        assert_eq!(pieces, [piece((1 << 20) + 4096, 4096)]);
        assert_eq!(layout.bytes(), 2 << 20);
        assert_eq!(
            layout.used(&requests),
            [0..65536, 1 << 20..(1 << 20) + 65536]
        );
    }

    #[test]
    fn what_is_too_long_for_one_request_becomes_several() {
        let long = request(0, 0, 65 << 11);
        let layout = Layout::of(&[long]).expect("in reach");
        let lengths: Vec<u32> = layout.pieces(&long).map(|piece| piece.length).collect();
        assert_eq!(lengths, [32 << 20, 32 << 20, 1 << 20]);
    }

    #[test]
    fn addresses_that_no_volume_has_are_refused() {
        for sector in [1 << 40, u64::MAX / 512, u64::MAX] {
            let failure = Layout::of(&[request(0, sector, 8)]).expect_err("too far");
            assert!(failure.to_string().contains("64 TiB"), "{failure}");
        }
    }
}
