//! The content of a drive: 4 KiB blocks, shared by copies until one of them changes.

use crate::content::Facts;
use crate::medium::SECTOR;
use format::crc32c;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use units::BLOCK;

/// One block, with its parsed content once it was examined: many states have it.
pub struct Block {
    bytes: Box<[u8; BLOCK]>,
    crc: OnceLock<u32>,
    facts: OnceLock<Facts>,
    /// Which of the slots of memory that is lent it may have (`lent.rs`).
    slot: AtomicU32,
}

impl Block {
    /// A block of these bytes.
    ///
    /// # Panics
    /// When they are more or less than one.
    pub fn of(bytes: &[u8]) -> Self {
        let bytes: Box<[u8]> = bytes.into();
        Self {
            bytes: bytes.try_into().expect("a whole block"),
            crc: OnceLock::new(),
            facts: OnceLock::new(),
            slot: AtomicU32::new(0),
        }
    }

    /// The slot of lent memory that it was given last.
    pub fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed) as usize
    }

    /// It was given a slot of lent memory.
    pub fn set_slot(&self, slot: usize) {
        self.slot.store(slot as u32, Ordering::Relaxed);
    }

    /// The same with one bit the other way.
    pub fn with_bit_turned(&self, bit: usize) -> Self {
        let mut bytes = *self.bytes;
        bytes[bit / 8] ^= 1 << (bit % 8);
        Self::of(&bytes)
    }

    /// Its checksum.
    pub fn crc(&self) -> u32 {
        *self.crc.get_or_init(|| crc32c(&self.bytes[..]))
    }

    /// Whether both hold the same.
    pub fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.crc() == other.crc() && self.bytes == other.bytes
    }

    /// Its content.
    pub fn facts(&self) -> &Facts {
        self.facts
            .get_or_init(|| Facts::with(self.crc(), &self.bytes))
    }
}

impl Deref for Block {
    type Target = [u8; BLOCK];

    fn deref(&self) -> &[u8; BLOCK] {
        &self.bytes
    }
}

/// Blocks of one leaf.
const LEAF: usize = 64;

type Leaf = [Option<Arc<Block>>; LEAF];

/// The content of a drive. A copy costs nothing until it changes, then a pointer for every 256 KiB.
#[derive(Clone)]
pub struct Image {
    leaves: Arc<Vec<Option<Arc<Leaf>>>>,
}

impl Image {
    /// A drive of `size` bytes that holds zeroes.
    pub fn new(size: u64) -> Self {
        let leaves = (size as usize / BLOCK).div_ceil(LEAF);
        Self {
            leaves: Arc::new(vec![None; leaves]),
        }
    }

    /// Blocks of the drive, at least.
    pub fn blocks(&self) -> u64 {
        (self.leaves.len() * LEAF) as u64
    }

    /// A block; `None` when it was never written.
    pub fn get(&self, block: u64) -> Option<&Arc<Block>> {
        let (leaf, at) = (block as usize / LEAF, block as usize % LEAF);
        self.leaves.get(leaf)?.as_ref()?[at].as_ref()
    }

    /// Replaces a block.
    pub fn set(&mut self, block: u64, content: Option<Arc<Block>>) {
        let (leaf, at) = (block as usize / LEAF, block as usize % LEAF);
        let leaf = &mut Arc::make_mut(&mut self.leaves)[leaf];
        let leaf = leaf.get_or_insert_with(|| Arc::new([const { None }; LEAF]));
        Arc::make_mut(leaf)[at] = content;
    }

    /// A drive of `size` bytes, whole blocks, that holds the same as far as there is room, and zeroes behind.
    pub fn resized(&self, size: u64) -> Self {
        let mut image = Self::new(size);
        for block in 0..(size / BLOCK as u64).min(self.blocks()) {
            if let Some(content) = self.get(block) {
                image.set(block, Some(content.clone()));
            }
        }
        image
    }

    /// Copies whole blocks from `first` on into `into`.
    pub fn read(&self, first: u64, into: &mut [u8]) {
        for (block, into) in (first..).zip(into.chunks_exact_mut(BLOCK)) {
            match self.get(block) {
                Some(content) => into.copy_from_slice(&content[..]),
                None => into.fill(0),
            }
        }
    }
}

/// A block after a crash.
#[derive(Clone)]
pub enum Content {
    /// As it was written.
    Whole(Arc<Block>),
    /// Sectors of both: of the new one where the bit is set.
    Torn {
        /// The previous content; `None` is zeroes.
        old: Option<Arc<Block>>,
        /// The content being written.
        new: Arc<Block>,
        /// A bit a sector.
        mask: u8,
    },
}

impl Content {
    /// Whether both are the same to an engine that finds them: of the same blocks in the same way, or torn so that no
    /// checksum fits, which is all that is ever examined of such a block, but for what a page says at its beginning: that
    /// tells that a page of the journal was there.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |one: &Option<Arc<Block>>, other: &Option<Arc<Block>>| {
            let address = |block: &Option<Arc<Block>>| block.as_ref().map(Arc::as_ptr);
            address(one) == address(other)
        };
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.is_same(other),
            (
                Self::Torn { old, new, mask },
                Self::Torn {
                    old: before,
                    new: after,
                    mask: bits,
                },
            ) => {
                mask == bits && Arc::ptr_eq(new, after) && same(old, before)
                    || self.head() == other.head() && self.is_mixture() && other.is_mixture()
            }
            _ => false,
        }
    }

    /// The first sector of a page of metadata, as far as it is one.
    fn head(&self) -> Option<&[u8]> {
        let Self::Torn { old, new, mask } = self else {
            return None;
        };
        let head = match mask & 1 {
            1 => Some(new),
            _ => old.as_ref(),
        };
        let head = &head?[..SECTOR];
        head.starts_with(b"CV").then_some(head)
    }

    /// Whether it is neither of the two blocks that it was torn between.
    fn is_mixture(&self) -> bool {
        self.differs() == (true, true)
    }

    /// Whether a torn block differs from the old one, and from the new one.
    fn differs(&self) -> (bool, bool) {
        let Self::Torn { old, new, mask } = self else {
            return (false, false);
        };
        let differs = |at: usize| {
            let range = at * SECTOR..(at + 1) * SECTOR;
            match old {
                Some(old) => old[range.clone()] != new[range],
                None => new[range].iter().any(|byte| *byte != 0),
            }
        };
        let has =
            |set: bool| (0..BLOCK / SECTOR).any(|at| (mask >> at & 1 == 1) == set && differs(at));
        (has(true), has(false))
    }

    /// Copies the block into `into`.
    pub fn read(&self, into: &mut [u8]) {
        let (old, new, mask) = match self {
            Self::Whole(content) => return into.copy_from_slice(&content[..]),
            Self::Torn { old, new, mask } => (old, new, mask),
        };
        for (at, into) in into.chunks_exact_mut(SECTOR).enumerate() {
            let range = at * SECTOR..(at + 1) * SECTOR;
            match (mask >> at & 1 == 1, old) {
                (true, _) => into.copy_from_slice(&new[range]),
                (false, Some(old)) => into.copy_from_slice(&old[range]),
                (false, None) => into.fill(0),
            }
        }
    }

    /// The block by itself.
    pub fn block(&self) -> Arc<Block> {
        if let Self::Whole(content) = self {
            return content.clone();
        }
        let mut bytes = [0; BLOCK];
        self.read(&mut bytes);
        Arc::new(Block::of(&bytes))
    }
}

/// Content of a drive after a crash: an image, and the blocks that differ from it.
#[derive(Clone)]
pub struct Crashed {
    /// The durable content.
    pub base: Image,
    /// Blocks that are otherwise; of several for one block the last counts.
    pub changed: Vec<(u64, Content)>,
}

impl Crashed {
    /// An image as it is.
    pub fn unchanged(base: Image) -> Self {
        Self {
            base,
            changed: Vec::new(),
        }
    }

    /// The last of the changes of a block.
    pub fn change(&self, block: u64) -> Option<&Content> {
        let mut newest = self.changed.iter().rev();
        newest
            .find(|(at, _)| *at == block)
            .map(|(_, content)| content)
    }

    /// The block as it is now; `None` when it was never written.
    pub fn get(&self, block: u64) -> Option<Arc<Block>> {
        match self.change(block) {
            Some(content) => Some(content.block()),
            None => self.base.get(block).cloned(),
        }
    }

    /// A write that a crash broke off in this block: some of its sectors are there. Where what is there is the whole old block
    /// or the whole new one, it is that block: states in which others are torn have the same.
    pub fn tear(&mut self, block: u64, new: &Arc<Block>, mask: u8) {
        let torn = Content::Torn {
            old: self.get(block),
            new: new.clone(),
            mask,
        };
        match torn.differs() {
            (false, _) => {}
            (true, false) => self.changed.push((block, Content::Whole(new.clone()))),
            (true, true) => self.changed.push((block, torn)),
        }
    }

    /// An image of its own.
    pub fn image(&self) -> Image {
        let mut image = self.base.clone();
        for (block, content) in &self.changed {
            image.set(*block, Some(content.block()));
        }
        image
    }
}

/// Whole blocks out of bytes.
pub fn blocks_of(bytes: &[u8]) -> impl Iterator<Item = Arc<Block>> {
    bytes
        .chunks_exact(BLOCK)
        .map(|bytes| Arc::new(Block::of(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_blocks_are_the_same_but_for_what_a_page_says_at_its_beginning() {
        let torn = |begin: [&[u8]; 2], mask| {
            let block = |begin: &[u8], fill| {
                let mut bytes = [fill; BLOCK];
                bytes[..begin.len()].copy_from_slice(begin);
                Arc::new(Block::of(&bytes))
            };
            Content::Torn {
                old: Some(block(begin[0], 1)),
                new: block(begin[1], 2),
                mask,
            }
        };
        let data: [&[u8]; 2] = [b"", b""];
        assert!(torn(data, 2).is_same(&torn(data, 5)));
        assert!(
            !torn(data, 2).is_same(&torn(data, 0)),
            "that is the old one"
        );
        let pages: [&[u8]; 2] = [b"CVJL one", b"CVJL two"];
        assert!(torn(pages, 2).is_same(&torn(pages, 4)));
        assert!(!torn(pages, 2).is_same(&torn(pages, 5)));
        let over_data: [&[u8]; 2] = [b"", b"CVJL two"];
        assert!(torn(over_data, 2).is_same(&torn(over_data, 4)));
        assert!(!torn(over_data, 2).is_same(&torn(over_data, 5)));
    }
}
