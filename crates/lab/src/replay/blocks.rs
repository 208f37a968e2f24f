//! A trace as the sequence of 4 KiB blocks that its requests touch.

use std::collections::HashSet;
use traces::{Request, SECTOR};
use units::BLOCK;

/// Sectors of a block.
const SECTORS: u64 = BLOCK as u64 / SECTOR;
/// Bits of a key that number the block; those above are the device.
const BLOCK_BITS: u32 = 48;

/// Blocks in the order in which they are used.
pub struct Uses {
    /// One for each block of each request.
    pub keys: Vec<u64>,
    /// How many different ones.
    pub distinct: u64,
}

impl Uses {
    /// Of these requests.
    pub fn of(requests: &[Request]) -> Self {
        let keys: Vec<u64> = requests.iter().flat_map(blocks).collect();
        let distinct = keys.iter().collect::<HashSet<_>>().len() as u64;
        Self { keys, distinct }
    }
}

/// Blocks of a request that are in one extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The trace's device.
    pub volume: u32,
    /// The first block.
    pub first: u64,
    /// The block after the last.
    pub end: u64,
}

/// What a request touches, in part or whole, cut where extents of so many blocks end.
pub fn spans(request: &Request, extent: u64) -> impl Iterator<Item = Span> + use<> {
    let volume = u32::from(request.device);
    let first = request.sector / SECTORS;
    let end = (request.sector + u64::from(request.sectors)).div_ceil(SECTORS);
    (first / extent..end.div_ceil(extent)).map(move |number| Span {
        volume,
        first: first.max(number.saturating_mul(extent)),
        end: end.min((number + 1) * extent),
    })
}

/// Bytes that a request asks for.
pub fn bytes(request: &Request) -> u64 {
    u64::from(request.sectors) * SECTOR
}

/// Blocks that a request touches, in part or whole.
fn blocks(request: &Request) -> impl Iterator<Item = u64> + use<> {
    let device = u64::from(request.device) << BLOCK_BITS;
    spans(request, 1).map(move |span| device | span.first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sector: u64, sectors: u32, device: u16) -> Request {
        Request {
            at_us: 0,
            sector,
            sectors,
            device,
            write: false,
        }
    }

    #[test]
    fn a_request_uses_each_block_that_it_touches_once() {
        let uses = Uses::of(&[request(7, 2, 0), request(8, 8, 0), request(8, 8, 1)]);
        assert_eq!(uses.keys, [0, 1, 1, 1 | 1 << BLOCK_BITS]);
        assert_eq!(uses.distinct, 3);
    }

    #[test]
    fn a_request_is_cut_where_extents_end() {
        let spans: Vec<_> = spans(&request(15 * 8 + 7, 18 * 8, 3), 16).collect();
        let span = |first, end| Span {
            volume: 3,
            first,
            end,
        };
        assert_eq!(spans, [span(15, 16), span(16, 32), span(32, 34)]);
    }
}
