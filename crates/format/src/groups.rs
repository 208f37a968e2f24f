//! Bitmaps of space: which blocks or chunks of a shard's groups are in use.

use crate::bytes::{get_u64, put};
use crate::page::BODY;
use crate::{Page, PageHeader, PageKind};
use units::VdriveId;

/// Groups of one [`HomesPage`].
pub const HOME_GROUPS: usize = 128;
const WORDS: usize = 256;

/// A group: vdrive in the upper 8 bits, index below. Also its key in the shard's trees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupKey(pub u32);

impl GroupKey {
    /// Group `group` (below 2^24) of a vdrive.
    pub fn new(vdrive: VdriveId, group: u32) -> Self {
        Self(u32::from(vdrive.0) << 24 | group)
    }

    /// Its vdrive.
    pub fn vdrive(self) -> VdriveId {
        VdriveId((self.0 >> 24) as u8)
    }

    /// Its index on the vdrive.
    pub fn group(self) -> u32 {
        self.0 & 0x00ff_ffff
    }

    /// Key of the page of bitmaps of homes that it is on.
    pub fn homes_page(self) -> u32 {
        self.0 / HOME_GROUPS as u32
    }
}

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

    /// Creates the page.
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

    /// Creates the page; `None` is a group that the shard does not own.
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
