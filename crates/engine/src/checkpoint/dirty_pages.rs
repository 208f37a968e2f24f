//! Chunks' pages that changed since they were last copied by a checkpoint, and how many nodes of trees did by that.
//!
//! Invariant: a page is here once for each time that its `dirty` flag became set; a checkpoint takes all at once and clears
//! the flag as it copies a page, so a page that changes afterwards is here again, for the next one. Until it is copied, a
//! taken page counts as **unplaced**: room for it has to be left in the metadata region, as for those that wait.

use crate::map::page::MapPage;
use crate::map::radix::DirtyNodes;
use std::rc::Rc;

/// A changed page: its layer, its chunk, and itself.
pub(crate) type DirtyPage = (u32, u32, Rc<MapPage>);

/// Changed pages.
#[derive(Default)]
pub(crate) struct DirtyPages {
    waiting: Vec<DirtyPage>,
    unplaced: usize,
    /// Nodes of layers' trees that have changed pages beneath them.
    nodes: DirtyNodes,
}

impl DirtyPages {
    /// A page has changed that counted as unchanged.
    #[inline]
    pub fn push(&mut self, layer: u32, chunk: u32, map_page: &Rc<MapPage>) {
        self.waiting.push((layer, chunk, map_page.clone()));
    }

    /// Pages that wait for the next checkpoint.
    pub fn waiting(&self) -> &[DirtyPage] {
        &self.waiting
    }

    /// How many are still to get a place: of those that wait, and of those of the checkpoint in progress.
    #[inline]
    pub fn unplaced(&self) -> usize {
        self.unplaced + self.waiting.len()
    }

    /// Nodes of layers' trees that have changed pages beneath them: their trees count them here.
    pub fn nodes(&self) -> &DirtyNodes {
        &self.nodes
    }

    /// A checkpoint takes those that wait.
    pub(super) fn take(&mut self) -> Vec<DirtyPage> {
        self.unplaced = self.waiting.len();
        std::mem::take(&mut self.waiting)
    }

    /// One of them was copied.
    pub(super) fn placed(&mut self) {
        self.unplaced -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::{BlockCounts, ChunkPage};

    #[test]
    fn pages_count_until_they_have_places() {
        let page = |chunk| MapPage::new(ChunkPage::new(1, chunk), BlockCounts::default());
        let mut pages = DirtyPages::default();
        (0..2).for_each(|chunk| pages.push(1, chunk, &page(chunk)));
        assert_eq!(pages.take().len(), 2);
        pages.push(1, 0, &page(0));
        assert_eq!((pages.waiting().len(), pages.unplaced()), (1, 3));
        pages.placed();
        pages.placed();
        assert_eq!(pages.unplaced(), 1);
    }
}
