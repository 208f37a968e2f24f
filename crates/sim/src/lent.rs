//! Shared buffers of single blocks: every read of exactly one block, of any drive and state, returns the same buffer. It is
//! filled once, and its checksum is known.

use crate::image::Block;
use crate::shadow;
use block::DmaBuf;
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use units::BLOCK;

/// Blocks that have a buffer at most; then all buffers are dropped.
const MOST: usize = 1 << 14;

thread_local! {
    static SLOTS: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
    static ZEROES: OnceCell<Arc<Block>> = const { OnceCell::new() };
}

/// The block is kept: no other one can be where it is.
struct Slot {
    block: Arc<Block>,
    memory: DmaBuf,
}

impl Drop for Slot {
    /// A remaining owner of the memory may be the only one from now on, and change it.
    fn drop(&mut self) {
        shadow::note(&self.memory, None);
    }
}

/// The memory of a block.
pub fn lend(block: &Arc<Block>) -> DmaBuf {
    SLOTS.with_borrow_mut(|slots| {
        if let Some(slot) = slots.get(block.slot())
            && Arc::ptr_eq(&slot.block, block)
        {
            return slot.memory.clone();
        }
        if slots.len() == MOST {
            slots.clear();
        }
        let mut memory = shadow::memory_of(BLOCK);
        memory.copy_from_slice(&block[..]);
        shadow::note(&memory, Some(block));
        block.set_slot(slots.len());
        slots.push(Slot {
            block: block.clone(),
            memory: memory.clone(),
        });
        memory
    })
}

/// A block of zeroes, the same for all of a thread.
pub fn zeroes() -> Arc<Block> {
    ZEROES.with(|zeroes| {
        let made = || Arc::new(Block::of(&[0; BLOCK]));
        zeroes.get_or_init(made).clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_one_buffer_of_its_own() {
        let blocks = [3, 4].map(|value| Arc::new(Block::of(&[value; BLOCK])));
        let lent = blocks.each_ref().map(lend);
        assert_eq!(lent.each_ref().map(|lent| lent[BLOCK - 1]), [3, 4]);
        assert_eq!(lend(&blocks[0]).as_ptr(), lent[0].as_ptr());
        assert_eq!(format::crc32c(&lent[0]), blocks[0].crc());
        assert_eq!(lend(&zeroes())[..], [0; BLOCK]);
    }

    #[test]
    fn there_are_only_so_many_and_what_is_lent_stays() {
        let first = Arc::new(Block::of(&[7; BLOCK]));
        let lent = lend(&first);
        let others: Vec<_> = (0..=MOST)
            .map(|number| Arc::new(Block::of(&[number as u8; BLOCK])))
            .collect();
        for block in &others {
            assert_eq!(lend(block)[0], block[0]);
        }
        SLOTS.with_borrow(|slots| assert!(slots.len() <= MOST));
        assert_eq!((lent[0], lend(&first)[0]), (7, 7));
        assert!(lent.is_unique(), "it has other memory by now");
    }
}
