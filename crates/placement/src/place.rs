//! The objects of decisions.

use units::EXTENT_BLOCKS;

/// An extent: 64 KiB of a volume, 16 blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The volume.
    pub volume: u32,
    /// Counted from the volume's first byte.
    pub number: u64,
}

/// Blocks of one extent; bit 0 is the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// The extent.
    pub extent: Extent,
    /// Which of its blocks.
    pub mask: u16,
}

/// The blocks `first` to `end` of a volume, extent by extent; `end` is not one of them.
pub fn split(volume: u32, first: u64, end: u64) -> impl Iterator<Item = Blocks> {
    let size = EXTENT_BLOCKS as u64;
    (first / size..end.div_ceil(size)).map(move |number| {
        let low = first.saturating_sub(number * size);
        let high = (end - number * size).min(size);
        Blocks {
            extent: Extent { volume, number },
            mask: ((1u32 << high) - (1u32 << low)) as u16,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_where_extents_end() {
        let parts = |first, end| {
            let parts = split(1, first, end).map(|it| (it.extent.number, it.mask));
            parts.collect::<Vec<_>>()
        };
        assert_eq!(parts(3, 5), [(0, 0b11000)]);
        assert_eq!(parts(15, 34), [(0, 1 << 15), (1, u16::MAX), (2, 0b11)]);
        assert_eq!(parts(16, 32), [(1, u16::MAX)]);
    }
}
