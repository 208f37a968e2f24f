//! What a drive holds: 4 KiB blocks that copies share until one of them changes.

use std::sync::Arc;
use units::BLOCK;

/// One block.
pub type Block = [u8; BLOCK];

/// Blocks of one leaf.
const LEAF: usize = 64;

type Leaf = [Option<Arc<Block>>; LEAF];

/// The content of a drive. A copy costs a pointer for every 256 KiB.
#[derive(Clone)]
pub struct Image {
    leaves: Vec<Option<Arc<Leaf>>>,
}

impl Image {
    /// A drive of `size` bytes that holds zeroes.
    pub fn new(size: u64) -> Self {
        let leaves = (size as usize / BLOCK).div_ceil(LEAF);
        Self {
            leaves: vec![None; leaves],
        }
    }

    /// A block; `None` when it was never written.
    pub fn get(&self, block: u64) -> Option<&Arc<Block>> {
        let (leaf, at) = (block as usize / LEAF, block as usize % LEAF);
        self.leaves.get(leaf)?.as_ref()?[at].as_ref()
    }

    /// Replaces a block.
    pub fn set(&mut self, block: u64, content: Option<Arc<Block>>) {
        let (leaf, at) = (block as usize / LEAF, block as usize % LEAF);
        let leaf = self.leaves[leaf].get_or_insert_with(|| Arc::new([const { None }; LEAF]));
        Arc::make_mut(leaf)[at] = content;
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

/// Whole blocks out of bytes.
pub fn blocks_of(bytes: &[u8]) -> impl Iterator<Item = Arc<Block>> {
    bytes.chunks_exact(BLOCK).map(|bytes| {
        let block: &Block = bytes.try_into().expect("a whole block");
        Arc::new(*block)
    })
}
