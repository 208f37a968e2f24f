//! Bitmaps of space: which blocks or chunks of a shard's groups are in use.

use crate::bytes::{get_u64, put};
use crate::page::BODY;
use crate::{Page, PageHeader, PageKind};

/// Groups of one [`HomesPage`].
pub const HOME_GROUPS: usize = 128;
const WORDS: usize = 256;

/// A group handed out in 4 KiB blocks: one bit a block, at most 16,384.
pub struct SlotsPage;

impl SlotsPage {
    /// The header of the page of group `key` (vdrive in the upper 8 bits, group below).
    pub fn header(owner: u32, key: u32, generation: u64) -> PageHeader {
        PageHeader {
            kind: PageKind::Slots,
            level: 0,
            owner,
            key,
            generation,
        }
    }

    /// Makes the page.
    pub fn encode(header: PageHeader, bits: &[u64; WORDS]) -> Page {
        let mut page = Page::new(header);
        for (index, word) in bits.iter().enumerate() {
            put(page.bytes_mut(), BODY + 8 * index, &word.to_le_bytes());
        }
        page
    }

    /// Reads the bits.
    pub fn decode(page: &Page) -> [u64; WORDS] {
        std::array::from_fn(|index| get_u64(page.bytes(), BODY + 8 * index))
    }
}

/// Consecutive groups handed out in 1 MiB chunks: owned or not, and one bit a chunk.
pub struct HomesPage;

impl HomesPage {
    /// The header of the page of the groups that begin at `key`.
    pub fn header(owner: u32, key: u32, generation: u64) -> PageHeader {
        PageHeader {
            kind: PageKind::Homes,
            level: 0,
            owner,
            key,
            generation,
        }
    }

    /// Makes the page; `None` is a group that the shard does not own.
    pub fn encode(header: PageHeader, groups: &[Option<u64>; HOME_GROUPS]) -> Page {
        let mut page = Page::new(header);
        for (index, group) in groups.iter().enumerate() {
            let at = BODY + 16 * index;
            put(
                page.bytes_mut(),
                at,
                &u64::from(group.is_some()).to_le_bytes(),
            );
            put(page.bytes_mut(), at + 8, &group.unwrap_or(0).to_le_bytes());
        }
        page
    }

    /// Reads the groups.
    pub fn decode(page: &Page) -> [Option<u64>; HOME_GROUPS] {
        std::array::from_fn(|index| {
            let at = BODY + 16 * index;
            (get_u64(page.bytes(), at) == 1).then(|| get_u64(page.bytes(), at + 8))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_survive() {
        let mut bits = [0; WORDS];
        bits[255] = u64::MAX;
        bits[0] = 5;
        assert_eq!(
            SlotsPage::decode(&SlotsPage::encode(SlotsPage::header(1, 2, 3), &bits)),
            bits
        );
        let mut groups = [None; HOME_GROUPS];
        groups[127] = Some(0);
        groups[3] = Some(u64::MAX);
        assert_eq!(
            HomesPage::decode(&HomesPage::encode(HomesPage::header(1, 2, 3), &groups)),
            groups
        );
    }
}
