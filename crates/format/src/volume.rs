//! A volume's entry in a shard's directory.

use crate::bytes::{get_u64, put};
use crate::page::BODY;
use crate::{Page, PageHeader, PageKind, PagePtr};
use std::ops::{AddAssign, SubAssign};
use units::CHUNK_BLOCKS;

/// Blocks by where they are, as the pages of a volume's map say. They come from a drive beside those pages, and may
/// say less than those do: sums and differences end at the ends of their range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockCounts {
    /// At their slow home alone.
    pub home: u64,
    /// In a fast slot alone.
    pub fast: u64,
    /// In a fast slot and at home.
    pub clean: u64,
    /// In a slot of the slow tier.
    pub slow: u64,
}

impl BlockCounts {
    /// Blocks that hold something.
    pub fn mapped(&self) -> u64 {
        [self.fast, self.clean, self.slow]
            .into_iter()
            .fold(self.home, u64::saturating_add)
    }

    /// Whether a volume has as many blocks: its chunks are counted in 32 bits.
    pub fn is_possible(&self) -> bool {
        self.mapped() <= (CHUNK_BLOCKS as u64) << 32
    }
}

impl AddAssign for BlockCounts {
    fn add_assign(&mut self, other: Self) {
        self.home = self.home.saturating_add(other.home);
        self.fast = self.fast.saturating_add(other.fast);
        self.clean = self.clean.saturating_add(other.clean);
        self.slow = self.slow.saturating_add(other.slow);
    }
}

impl SubAssign for BlockCounts {
    fn sub_assign(&mut self, other: Self) {
        self.home = self.home.saturating_sub(other.home);
        self.fast = self.fast.saturating_sub(other.fast);
        self.clean = self.clean.saturating_sub(other.clean);
        self.slow = self.slow.saturating_sub(other.slow);
    }
}

/// Root of a volume's map in one shard, and what it holds.
pub struct VolumePage;

impl VolumePage {
    /// The header of the page of volume `volume` in the directory `owner`.
    pub fn header(owner: u32, volume: u32, generation: u64) -> PageHeader {
        PageHeader {
            kind: PageKind::Volume,
            level: 0,
            owner,
            key: volume,
            generation,
        }
    }

    /// Creates the page.
    pub fn encode(header: PageHeader, root: PagePtr, counts: BlockCounts) -> Page {
        let mut page = Page::new(header);
        root.encode(page.bytes_mut(), BODY);
        let counts = [counts.home, counts.fast, counts.clean, counts.slow];
        for (index, count) in counts.iter().enumerate() {
            put(
                page.bytes_mut(),
                BODY + 16 + 8 * index,
                &count.to_le_bytes(),
            );
        }
        page
    }

    /// Reads it.
    pub fn decode(page: &Page) -> (PagePtr, BlockCounts) {
        let count = |index: usize| get_u64(page.bytes(), BODY + 16 + 8 * index);
        let counts = BlockCounts {
            home: count(0),
            fast: count(1),
            clean: count(2),
            slow: count(3),
        };
        (PagePtr::decode(page.bytes(), BODY), counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_survives() {
        let root = PagePtr {
            crc: 9,
            hint: 1,
            ..PagePtr::default()
        };
        let counts = BlockCounts {
            home: 1,
            fast: 2,
            clean: 3,
            slow: 1 << 39,
        };
        let page = VolumePage::encode(VolumePage::header(1, 2, 3), root, counts);
        assert_eq!(VolumePage::decode(&page), (root, counts));
        assert!(counts.is_possible());
    }

    #[test]
    fn counts_that_no_volume_has_are_known_as_such() {
        let counts = |home, slow| BlockCounts {
            home,
            slow,
            ..BlockCounts::default()
        };
        assert!(counts(1 << 40, 0).is_possible());
        assert!(!counts(1 << 40, 1).is_possible());
        assert!(!counts(u64::MAX, 91).is_possible());
    }
}
