//! Unique space of a snapshot: blocks that no other snapshot or volume refers to (docs/snapshots.md).
//!
//! Deleting it would free them. They are not counted as they arise, since a deleted
//! snapshot between two others changes them without any write: they are determined from the pages on request.

use super::layer_table::Missing;
use crate::shard::state::{Shard, State};
use block::IoError;
use format::{BlockMask, Owner, Reader};

/// Blocks that a snapshot sees, and those that others do.
#[derive(Clone, Copy, Default)]
struct Seen {
    own: BlockMask,
    others: BlockMask,
}

impl State {
    /// The blocks of a chunk that an owner's page has and only the snapshot sees.
    fn alone(&self, owner: &Owner, chunk: u32) -> Result<BlockMask, Missing> {
        let Some(map_page) = self.page_of(owner.layer, chunk)? else {
            return Ok(BlockMask::default());
        };
        let stored = {
            let page = map_page.page.borrow();
            page.slot_mask().or(page.home_mask())
        };
        let mut seen = Seen::default();
        if owner.is_own {
            seen.own = stored;
        }
        // What each viewer down to the last one leaves to be seen by those on it.
        let mut visible = vec![stored];
        for viewer in &owner.viewers {
            visible.truncate(viewer.depth + 1);
            let beneath = visible.last().copied().unwrap_or_default();
            let seen_here = match self.volumes.get(&viewer.layer) {
                Some(entry) if !entry.gone && !beneath.is_empty() => {
                    self.inherited_of(viewer.layer, owner.layer, chunk, beneath)?
                }
                _ => BlockMask::default(),
            };
            match viewer.reader {
                Reader::Own => seen.own = seen.own.or(seen_here),
                Reader::Other => seen.others = seen.others.or(seen_here),
                Reader::Nobody => {}
            }
            visible.push(seen_here);
        }
        Ok(seen.own.and_not(seen.others))
    }

    /// Which of these blocks of the layer `of` a layer that is based on it does not hide.
    fn inherited_of(
        &self,
        layer: u32,
        of: u32,
        chunk: u32,
        blocks: BlockMask,
    ) -> Result<BlockMask, Missing> {
        let Some(map_page) = self.page_of(layer, chunk)? else {
            return Ok(blocks);
        };
        let below = |layer| self.volumes.get(&layer);
        let Some(entry) = below(of) else {
            return Ok(blocks);
        };
        let covered = below(entry.parent).map_or(0, |below| below.epoch) + 1..=entry.epoch;
        let page = map_page.page.borrow();
        let inherited = page.inherited().and(blocks).blocks();
        Ok(inherited
            .filter(|block| covered.contains(&page.from(*block)))
            .collect())
    }
}

impl Shard {
    /// Blocks that only a snapshot sees, in some of the chunks of an owner from `from` on, and where to
    /// go on.
    ///
    /// # Errors
    /// The drive's error.
    pub async fn alone(&self, owner: &Owner, from: u32) -> Result<(u64, Option<u32>), IoError> {
        let by = {
            let state = self.state.borrow();
            let Some(entry) = state.volumes.get(&owner.layer) else {
                return Ok((0, None));
            };
            let mapped = |layer: u32| state.volumes.get(&layer).map(|entry| entry.counts.mapped());
            match &owner.viewers[..] {
                [] if owner.is_own => return Ok((entry.counts.mapped(), None)),
                // A chunk counts only where this one has a page, too, which may be in fewer of them.
                [only] if owner.is_own && only.reader == Reader::Other => {
                    let fewer = mapped(only.layer).is_some_and(|few| few < entry.counts.mapped());
                    if fewer { only.layer } else { owner.layer }
                }
                _ => owner.layer,
            }
        };
        let mut blocks = 0;
        let chunks = self.next_chunks(by, from).await?;
        for chunk in &chunks {
            let alone = self.look(|state| Ok(state.alone(owner, *chunk))).await?;
            blocks += alone.count() as u64;
        }
        self.trim_pages();
        let next = chunks.last().and_then(|last| last.checked_add(1));
        Ok((blocks, next))
    }
}
