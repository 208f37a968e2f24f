//! The map of one chunk: location and checksum of each of its 256 blocks.

use crate::bytes::{get_u16, get_u32, get_u64, is_zero, put, put_place};
use crate::page::BODY;
use crate::{BlockMask, PAGE, Page, PageHeader, PageKind};
use units::{CHUNK_BLOCKS, EXTENT_BLOCKS, Place, prefetch};

const HOME: usize = BODY;
const HOME_VALID: usize = BODY + 8;
const CRCS: usize = 128;
const SLOTS: usize = CRCS + 4 * CHUNK_BLOCKS;
/// Bytes of a place.
const SLOT: usize = 6;
const FROM: usize = SLOTS + SLOT * CHUNK_BLOCKS;
/// Blocks of which it is looked together whether any has a slot or inherits.
const MANY: usize = 16;
/// Blocks that are sooner examined one by one than the whole page is.
const FEW: usize = 32;

/// Where a block's content is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockState {
    /// Never written, or discarded: zeroes. Or inherited: [`ChunkPage::from`] tells.
    Zero,
    /// At its home alone.
    Home,
    /// In a slot alone: newer than its home, or it has none.
    Dirty,
    /// In a slot and, the same, at its home.
    Clean,
}

/// A chunk's page. In memory it is kept as it is on the drive.
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
    #[inline]
    pub fn page(&self) -> &Page {
        &self.0
    }

    /// The page, to set its header.
    #[inline]
    pub fn page_mut(&mut self) -> &mut Page {
        &mut self.0
    }

    /// Has the processor fetch what the page says of a block.
    pub fn prefetch(&self, block: usize) {
        let bytes = self.0.bytes();
        for at in [HOME, CRCS + 4 * block, SLOTS + SLOT * block] {
            prefetch(&bytes[at]);
        }
    }

    /// First block of the 1 MiB home, or none.
    #[inline]
    pub fn home(&self) -> Place {
        Place::from_bits(get_u64(self.0.bytes(), HOME))
    }

    /// Sets the home. Which blocks are valid there is kept apart.
    #[inline]
    pub fn set_home(&mut self, home: Place) {
        put(self.0.bytes_mut(), HOME, &home.bits().to_le_bytes());
    }

    /// Whether the home holds the block's present content.
    #[inline]
    pub fn home_valid(&self, block: usize) -> bool {
        self.0.bytes()[HOME_VALID + block / 8] >> (block % 8) & 1 == 1
    }

    /// The blocks whose present content is at home.
    pub fn home_mask(&self) -> BlockMask {
        BlockMask::from_bytes(&self.0.bytes()[HOME_VALID..HOME_VALID + 32])
    }

    /// Sets whether the home holds the block's present content.
    #[inline]
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
    #[inline]
    pub fn crc(&self, block: usize) -> u32 {
        get_u32(self.0.bytes(), CRCS + 4 * block)
    }

    /// Sets the block's checksum.
    #[inline]
    pub fn set_crc(&mut self, block: usize, crc: u32) {
        put(self.0.bytes_mut(), CRCS + 4 * block, &crc.to_le_bytes());
    }

    /// The block's slot, or none.
    #[inline]
    pub fn slot(&self, block: usize) -> Place {
        // One load, whose last bytes are no part of it; other fields follow, so that they are there.
        const { assert!(SLOTS + SLOT * CHUNK_BLOCKS + 8 <= PAGE) };
        Place::from_bits(get_u64(self.0.bytes(), SLOTS + SLOT * block))
    }

    /// The blocks that have slots.
    pub fn slot_mask(&self) -> BlockMask {
        let slots = &self.0.bytes()[SLOTS..SLOTS + SLOT * CHUNK_BLOCKS];
        let mut mask = BlockMask::default();
        // Most chunks have long stretches without: many at a time.
        for (index, many) in slots.chunks_exact(MANY * SLOT).enumerate() {
            if is_zero(many) {
                continue;
            }
            for (at, slot) in many.chunks_exact(SLOT).enumerate() {
                if slot != [0; SLOT] {
                    mask.set(MANY * index + at);
                }
            }
        }
        mask
    }

    /// Of the 64 KiB `extent`, the blocks that have slots; bit 0 is its first.
    pub fn slots_of(&self, extent: usize) -> u16 {
        let all = &self.0.bytes()[SLOTS..SLOTS + SLOT * CHUNK_BLOCKS];
        let slots = all[extent * EXTENT_BLOCKS * SLOT..].chunks_exact(SLOT);
        let bits = slots.take(EXTENT_BLOCKS).enumerate();
        bits.fold(0, |mask, (at, slot)| {
            mask | u16::from(slot != [0; SLOT]) << at
        })
    }

    /// The same of the blocks whose present content is at home.
    pub fn homes_of(&self, extent: usize) -> u16 {
        get_u16(self.0.bytes(), HOME_VALID + extent * EXTENT_BLOCKS / 8)
    }

    /// Sets the block's slot.
    #[inline]
    pub fn set_slot(&mut self, block: usize, slot: Place) {
        put_place(self.0.bytes_mut(), SLOTS + SLOT * block, slot);
    }

    /// The epoch that the block is inherited from, or 0 when it is this layer's own. An inherited
    /// block has no slot here and is not valid at home.
    #[inline]
    pub fn from(&self, block: usize) -> u32 {
        get_u32(self.0.bytes(), FROM + 4 * block)
    }

    /// Sets what the block is inherited from; 0 for nothing.
    #[inline]
    pub fn set_from(&mut self, block: usize, epoch: u32) {
        put(self.0.bytes_mut(), FROM + 4 * block, &epoch.to_le_bytes());
    }

    /// The blocks that are inherited.
    pub fn inherited(&self) -> BlockMask {
        let from = &self.0.bytes()[FROM..FROM + 4 * CHUNK_BLOCKS];
        let mut mask = BlockMask::default();
        // Most pages inherit nothing: many at a time.
        for (index, many) in from.chunks_exact(MANY * 4).enumerate() {
            if is_zero(many) {
                continue;
            }
            for (at, epoch) in many.chunks_exact(4).enumerate() {
                if epoch != [0; 4] {
                    mask.set(MANY * index + at);
                }
            }
        }
        mask
    }

    /// Those of these blocks that are inherited.
    pub fn inherited_of(&self, blocks: BlockMask) -> BlockMask {
        if blocks.count() > FEW {
            return self.inherited().and(blocks);
        }
        let inherited = |block: &usize| self.from(*block) != 0;
        blocks.blocks().filter(inherited).collect()
    }

    /// The page that a layer standing on this one's begins with: it inherits what is here from
    /// `epoch`, this layer's, and what this one inherits from where that does.
    pub fn fork(&self, owner: u32, chunk: u32, epoch: u32) -> Self {
        let mut fork = Self::new(owner, chunk);
        for block in 0..CHUNK_BLOCKS {
            let own = match self.state(block) {
                BlockState::Zero => self.from(block),
                _ => epoch,
            };
            if own != 0 {
                fork.set_from(block, own);
            }
        }
        fork
    }

    /// Takes in the page of the layer that is based on this one's: what that has replaces what is here,
    /// what it inherits stays. Returns the slots and the home that are free by it. None, and nothing has
    /// changed, when both have homes with blocks that stay valid.
    pub fn merge(&mut self, upper: &Self) -> Option<(Vec<Place>, Place)> {
        let own = BlockMask::ALL.and_not(upper.inherited());
        let kept = self.home_mask().and_not(own);
        if upper.home().is_some() && !kept.is_empty() {
            return None;
        }
        let mut slots = Vec::new();
        for block in own.blocks() {
            let old = self.slot(block);
            slots.extend(old.is_some().then_some(old));
            self.set_slot(block, upper.slot(block));
            self.set_crc(block, upper.crc(block));
            self.set_from(block, 0);
            self.set_home_valid(block, upper.home_valid(block));
        }
        let old = self.home();
        if upper.home().is_none() && !self.home_mask().is_empty() {
            return Some((slots, Place::NONE));
        }
        self.set_home(upper.home());
        Some((slots, old))
    }

    /// Where the block's content is.
    #[inline]
    pub fn state(&self, block: usize) -> BlockState {
        match (self.slot(block).is_some(), self.home_valid(block)) {
            (false, false) => BlockState::Zero,
            (false, true) => BlockState::Home,
            (true, false) => BlockState::Dirty,
            (true, true) => BlockState::Clean,
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
        assert_eq!(page.state(255), BlockState::Clean);
        assert_eq!(page.state(0), BlockState::Home);
        assert_eq!(page.state(7), BlockState::Dirty);
        assert_eq!((page.slot(255), page.crc(255)), (slot, 0xdead_beef));
        assert_eq!(page.home(), Place::new(VdriveId(2), 1 << 30));
        assert!(page.page().header().is_some());
        let slots: Vec<usize> = page.slot_mask().blocks().collect();
        assert_eq!(slots, [7, 255]);
    }

    #[test]
    fn a_merge_keeps_what_is_inherited_and_frees_what_is_replaced() {
        let at = |block| Place::new(VdriveId(3), block);
        let mut lower = ChunkPage::new(5, 2);
        (0..3).for_each(|block| lower.set_slot(block, at(10 + block as u64)));
        lower.set_home(at(256));
        lower.set_home_valid(9, true);
        let mut upper = lower.fork(8, 2, 5);
        upper.set_slot(1, at(20));
        upper.set_crc(1, 77);
        upper.set_from(1, 0);
        upper.set_from(2, 0);
        assert_eq!(
            lower.merge(&upper),
            Some((vec![at(11), at(12)], Place::NONE))
        );
        let slots: Vec<_> = lower.slot_mask().blocks().collect();
        assert_eq!(
            (slots, lower.slot(1), lower.crc(1)),
            (vec![0, 1], at(20), 77)
        );
        assert_eq!((lower.home(), lower.home_valid(9)), (at(256), true));
        upper.set_home(at(512));
        upper.set_home_valid(3, true);
        let before = lower.clone();
        assert_eq!(lower.merge(&upper), None);
        assert!(lower == before);
        upper.set_from(9, 0);
        assert_eq!(lower.merge(&upper), Some((vec![at(20)], at(256))));
        assert_eq!(
            (lower.home(), lower.home_valid(9), lower.home_valid(3)),
            (at(512), false, true)
        );
    }

    #[test]
    fn a_fork_inherits_what_is_there_and_no_zeroes() {
        let mut page = ChunkPage::new(1, 2);
        page.set_slot(7, Place::new(VdriveId(3), 99));
        page.set_home(Place::new(VdriveId(2), 256));
        page.set_home_valid(255, true);
        page.set_from(9, 4);
        let fork = page.fork(8, 2, 5);
        let from: Vec<_> = fork
            .inherited()
            .blocks()
            .map(|block| (block, fork.from(block)))
            .collect();
        assert_eq!(from, [(7, 5), (9, 4), (255, 5)]);
        for few in [0..8, 0..256] {
            let asked: BlockMask = few.collect();
            let all = fork.inherited().and(asked);
            assert!(fork.inherited_of(asked) == all && !all.is_empty());
        }
        assert_eq!(
            (fork.state(7), fork.home()),
            (BlockState::Zero, Place::NONE)
        );
        assert_eq!(fork.page().header().map(|header| header.owner), Some(8));
        let again = fork.fork(9, 2, 8);
        assert_eq!(again.page().bytes()[FROM..], fork.page().bytes()[FROM..]);
    }
}
