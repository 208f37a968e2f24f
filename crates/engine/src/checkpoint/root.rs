//! The root of a shard's metadata: the generation of its newest checkpoint, and the trees that its record names.
//!
//! Three trees are the shard's own: the **directory** (layers, each with the root of its tree), the bitmaps of **slots** and
//! those of **homes**. In memory they are ahead of the record as soon as a checkpoint gives a page its place; the
//! generation follows once the record is durable. Invariant: they change only while the checkpoint's turn is held
//! (`checkpoint/turns.rs`) or by an opening, so what the record named stays readable until the next one is durable.

use crate::map::radix::{DirtyNodes, Tree};
use format::{Checkpoint, DIRECTORY, HOMES, PagePtr, SLOTS};

/// One of the shard's own trees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnTree {
    Directory,
    Slots,
    Homes,
}

/// The newest checkpoint's generation, and the shard's own trees.
pub(crate) struct CheckpointRoot {
    generation: u64,
    directory: Tree<()>,
    slots: Tree<()>,
    homes: Tree<()>,
}

impl CheckpointRoot {
    /// The root of a shard without a checkpoint.
    pub fn none() -> Self {
        Self::of(0, [PagePtr::default(); 3])
    }

    /// The structures that a checkpoint's record names, none of which has been read yet.
    pub fn named_by(record: &Checkpoint) -> Self {
        let roots = [record.directory, record.slots, record.homes];
        Self::of(record.generation, roots)
    }

    fn of(generation: u64, [directory, slots, homes]: [PagePtr; 3]) -> Self {
        let own = DirtyNodes::default();
        Self {
            generation,
            directory: Tree::new(DIRECTORY, directory, &own),
            slots: Tree::new(SLOTS, slots, &own),
            homes: Tree::new(HOMES, homes, &own),
        }
    }

    /// The generation of the newest durable checkpoint.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The record of the next one is durable.
    pub(super) fn advance(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// One of the trees.
    pub fn tree(&mut self, of: OwnTree) -> &mut Tree<()> {
        match of {
            OwnTree::Directory => &mut self.directory,
            OwnTree::Slots => &mut self.slots,
            OwnTree::Homes => &mut self.homes,
        }
    }

    /// The trees and their names: of the directory, of slots, of homes.
    pub fn trees(&self) -> [(&Tree<()>, &'static str); 3] {
        [
            (&self.directory, "directory"),
            (&self.slots, "slots"),
            (&self.homes, "homes"),
        ]
    }

    /// Nodes of the trees together.
    pub(super) fn nodes(&self) -> usize {
        self.trees().iter().map(|(tree, _)| tree.nodes()).sum()
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.trees().iter().map(|(tree, _)| tree.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_what_its_record_names() {
        let mut record = Checkpoint {
            pool: units::PoolId(1),
            shard: units::ShardId(2),
            generation: 7,
            epoch: 0,
            journal_from: 0,
            directory: PagePtr::default(),
            slots: PagePtr::default(),
            homes: PagePtr::default(),
        };
        record.slots.crc = 5;
        let mut root = CheckpointRoot::named_by(&record);
        assert_eq!(root.generation(), 7);
        let crcs = root.trees().map(|(tree, _)| tree.root().crc);
        assert_eq!(crcs, [0, 5, 0]);
        assert_eq!(root.tree(OwnTree::Slots).root().crc, 5);
        root.advance(8);
        assert_eq!(root.generation(), 8);
    }
}
