//! Trees of pages: their owners, and inner nodes of 256 pointers.

use crate::bytes::{get_place, is_zero};
use crate::page::BODY;
use crate::{BlockMask, Page, PageHeader, PageKind, PagePtr};

/// Pointers of a node.
pub const FANOUT: usize = 256;

/// Levels of nodes above a tree's leaves; the top node's level.
pub const TREE_TOP: u8 = 4;
/// Owner of a shard's directory of volumes, beyond any volume's number.
pub const DIRECTORY: u32 = u32::MAX;
/// Owner of a shard's bitmaps of groups handed out in blocks.
pub const SLOTS: u32 = u32::MAX - 1;
/// Owner of a shard's bitmaps of groups handed out in chunks.
pub const HOMES: u32 = u32::MAX - 2;

/// Pointers that are examined together for whether any leads somewhere: as many bytes as several vectors have.
const MANY: usize = 16;

/// First key beneath the node of `level` (0 for a leaf) that holds `key`.
pub fn first_key(key: u32, level: u8) -> u32 {
    if level >= TREE_TOP {
        0
    } else {
        key >> (8 * level) << (8 * level)
    }
}

/// The pointers of a node's page.
pub struct NodePage;

impl NodePage {
    /// The header of the node of `level` (1 to [`TREE_TOP`]) that holds `key` in `owner`'s tree.
    pub fn header(owner: u32, level: u8, key: u32, generation: u64) -> PageHeader {
        PageHeader {
            kind: PageKind::Node,
            level,
            owner,
            key: first_key(key, level),
            generation,
        }
    }

    /// Reads pointer `index` (below [`FANOUT`]).
    #[inline]
    pub fn get(page: &Page, index: usize) -> PagePtr {
        PagePtr::decode(page.bytes(), Self::at(index))
    }

    /// Writes pointer `index`.
    #[inline]
    pub fn set(page: &mut Page, index: usize, ptr: PagePtr) {
        ptr.encode(page.bytes_mut(), Self::at(index));
    }

    /// The pointers that lead somewhere: a bit each.
    pub fn used(page: &Page) -> BlockMask {
        let bytes = &page.bytes()[BODY..BODY + FANOUT * PagePtr::SIZE];
        let mut used = BlockMask::default();
        // Most nodes have long stretches without: many at a time.
        for (index, many) in bytes.chunks_exact(MANY * PagePtr::SIZE).enumerate() {
            if is_zero(many) {
                continue;
            }
            for (at, ptr) in many.chunks_exact(PagePtr::SIZE).enumerate() {
                if get_place(ptr, 0).is_some() {
                    used.set(MANY * index + at);
                }
            }
        }
        used
    }

    fn at(index: usize) -> usize {
        assert!(index < FANOUT, "a node has {FANOUT} pointers");
        BODY + index * PagePtr::SIZE
    }
}
