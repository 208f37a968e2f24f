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

/// Blocks that a request touches, in part or whole.
fn blocks(request: &Request) -> impl Iterator<Item = u64> + use<> {
    let first = request.sector / SECTORS;
    let end = (request.sector + u64::from(request.sectors)).div_ceil(SECTORS);
    let device = u64::from(request.device) << BLOCK_BITS;
    (first..end).map(move |block| device | block)
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
}
