//! The map of one chunk: where each of its 256 blocks lies and what it must be.

use crate::bytes::{get_place, get_u32, get_u64, put, put_place};
use crate::page::BODY;
use crate::{BlockMask, Page, PageHeader, PageKind};
use units::{CHUNK_BLOCKS, Place};

const HOME: usize = BODY;
const HOME_VALID: usize = BODY + 8;
const CRCS: usize = 128;
const SLOTS: usize = CRCS + 4 * CHUNK_BLOCKS;
/// Bytes of a place.
const SLOT: usize = 6;

/// Where a block's content is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockState {
    /// Never written, or discarded: zeroes.
    Zero,
    /// At its home alone.
    Home,
    /// In a slot alone: newer than its home, or it has none.
    Dirty,
    /// In a slot and, the same, at its home.
    Shadow,
}

/// A chunk's page. In memory it is kept as it lies on the drive.
#[derive(Clone, PartialEq, Eq)]
pub struct ChunkPage(Page);

impl ChunkPage {
    /// The map of a chunk that was never written.
    pub fn new(volume: u32, chunk: u32) -> Self {
        Self(Page::new(Self::header(volume, chunk, 0)))
    }

    /// The header of the page of `chunk`.
    pub fn header(volume: u32, chunk: u32, generation: u64) -> PageHeader {
        PageHeader {
            kind: PageKind::Chunk,
            level: 0,
            owner: volume,
            key: chunk,
            generation,
        }
    }

    /// Takes a page that was opened with [`ChunkPage::header`].
    pub fn from_page(page: Page) -> Self {
        Self(page)
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.0
    }

    /// The page, to set its header.
    pub fn page_mut(&mut self) -> &mut Page {
        &mut self.0
    }

    /// First block of the 1 MiB home, or none.
    pub fn home(&self) -> Place {
        Place::from_bits(get_u64(self.0.bytes(), HOME))
    }

    /// Sets the home. Which blocks are valid there is kept apart.
    pub fn set_home(&mut self, home: Place) {
        put(self.0.bytes_mut(), HOME, &home.bits().to_le_bytes());
    }

    /// Whether the home holds the block's present content.
    pub fn home_valid(&self, block: usize) -> bool {
        self.0.bytes()[HOME_VALID + block / 8] >> (block % 8) & 1 == 1
    }

    /// The blocks whose present content is at home.
    pub fn home_mask(&self) -> BlockMask {
        BlockMask::from_bytes(&self.0.bytes()[HOME_VALID..HOME_VALID + 32])
    }

    /// Sets whether the home holds the block's present content.
    pub fn set_home_valid(&mut self, block: usize, valid: bool) {
        assert!(block < CHUNK_BLOCKS, "a chunk has {CHUNK_BLOCKS} blocks");
        let byte = &mut self.0.bytes_mut()[HOME_VALID + block / 8];
        if valid {
            *byte |= 1 << (block % 8);
        } else {
            *byte &= !(1 << (block % 8));
        }
    }

    /// CRC32C of the block's content; meaningless for [`BlockState::Zero`].
    pub fn crc(&self, block: usize) -> u32 {
        get_u32(self.0.bytes(), CRCS + 4 * block)
    }

    /// Sets the block's checksum.
    pub fn set_crc(&mut self, block: usize, crc: u32) {
        put(self.0.bytes_mut(), CRCS + 4 * block, &crc.to_le_bytes());
    }

    /// The block's slot, or none.
    pub fn slot(&self, block: usize) -> Place {
        get_place(self.0.bytes(), SLOTS + SLOT * block)
    }

    /// The blocks that have slots.
    pub fn slot_mask(&self) -> BlockMask {
        let slots = &self.0.bytes()[SLOTS..SLOTS + SLOT * CHUNK_BLOCKS];
        let mut mask = BlockMask::default();
        // Most chunks have long stretches without: four at a time.
        for (index, four) in slots.chunks_exact(4 * SLOT).enumerate() {
            if [0, 8, 16].map(|at| get_u64(four, at)) == [0; 3] {
                continue;
            }
            for (at, slot) in four.chunks_exact(SLOT).enumerate() {
                if slot != [0; SLOT] {
                    mask.set(4 * index + at);
                }
            }
        }
        mask
    }

    /// Sets the block's slot.
    pub fn set_slot(&mut self, block: usize, slot: Place) {
        put_place(self.0.bytes_mut(), SLOTS + SLOT * block, slot);
    }

    /// Where the block's content is.
    pub fn state(&self, block: usize) -> BlockState {
        match (self.slot(block).is_some(), self.home_valid(block)) {
            (false, false) => BlockState::Zero,
            (false, true) => BlockState::Home,
            (true, false) => BlockState::Dirty,
            (true, true) => BlockState::Shadow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::VdriveId;

    #[test]
    fn a_block_keeps_what_is_set_and_touches_no_other() {
        let mut page = ChunkPage::new(1, 2);
        let slot = Place::new(VdriveId(3), 99);
        page.set_slot(255, slot);
        page.set_crc(255, 0xdead_beef);
        page.set_home(Place::new(VdriveId(2), 1 << 30));
        page.set_home_valid(0, true);
        page.set_home_valid(255, true);
        page.set_slot(7, slot.plus(1));
        assert_eq!(page.state(255), BlockState::Shadow);
        assert_eq!(page.state(0), BlockState::Home);
        assert_eq!(page.state(7), BlockState::Dirty);
        assert_eq!((page.slot(255), page.crc(255)), (slot, 0xdead_beef));
        assert_eq!(page.home(), Place::new(VdriveId(2), 1 << 30));
        assert!(page.page().header().is_some());
        let slots: Vec<usize> = page.slot_mask().blocks().collect();
        assert_eq!(slots, [7, 255]);
    }
}
