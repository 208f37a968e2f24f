//! Inner nodes: 256 pointers.

use crate::page::BODY;
use crate::{Page, PagePtr};

/// Pointers of a node.
pub const FANOUT: usize = 256;

/// The pointers of a node's page.
pub struct NodePage;

impl NodePage {
    /// Reads pointer `index` (below [`FANOUT`]).
    pub fn get(page: &Page, index: usize) -> PagePtr {
        PagePtr::decode(page.bytes(), Self::at(index))
    }

    /// Writes pointer `index`.
    pub fn set(page: &mut Page, index: usize, ptr: PagePtr) {
        ptr.encode(page.bytes_mut(), Self::at(index));
    }

    fn at(index: usize) -> usize {
        assert!(index < FANOUT, "a node has {FANOUT} pointers");
        BODY + index * PagePtr::SIZE
    }
}
