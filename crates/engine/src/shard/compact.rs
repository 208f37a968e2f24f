//! Compaction: slots in use that lie scattered are moved together, so that groups become empty.
//!
//! Leaves out: when it is wanted (`spare.rs`), and homes that are partly used.

use super::demote::{Job, Moving, Target};
use super::journal::Work;
use super::leaf::Busy;
use super::state::Shard;
use super::throttle::Throttle;
use crate::space::Class;
use block::IoError;
use format::{BlockMask, BlockState, ChunkPage};
use std::ops::ControlFlow;
use units::CHUNK_BLOCKS;

/// Slots of a group that is to be empty, on their way out.
struct Leaving<'a> {
    shard: &'a Shard,
    class: Class,
    /// Slots that are still there.
    left: u64,
    pace: Throttle<'a>,
}

impl Shard {
    /// Empties groups of slots of a class into the shard's other groups, up to `most` of them.
    /// Goes on at a pace that hosts do not feel, unless one waits for space.
    ///
    /// # Errors
    /// What a drive said; what has moved by then has moved.
    pub(super) async fn compact(&self, class: Class, most: usize) -> Result<(), IoError> {
        let left = self.state.borrow_mut().alloc.close_sparse(class, most);
        if left == 0 {
            return Ok(());
        }
        let pace = Throttle::reclaim(&self.handle, &self.meters);
        let mut leaving = Leaving {
            shard: self,
            class,
            left,
            pace,
        };
        let result = leaving.all_layers().await;
        // Groups come free when nobody needs what was there.
        let settled = self.barrier().await;
        self.state.borrow_mut().alloc.reopen();
        result.and(settled)
    }
}

impl Leaving<'_> {
    async fn all_layers(&mut self) -> Result<(), IoError> {
        let layers: Vec<u32> = self.shard.state.borrow().volumes.keys().copied().collect();
        for layer in layers {
            let mut from = Some(0);
            while let Some(start) = from {
                let keys = self.shard.next_chunks(layer, start).await?;
                from = keys.last().and_then(|last| last.checked_add(1));
                for chunk in keys {
                    if self.shard.closing.get()
                        || self.may_have(layer, chunk) && self.chunk(layer, chunk).await?.is_break()
                    {
                        return Ok(());
                    }
                }
                self.shard.trim_leaves();
            }
        }
        Ok(())
    }

    /// Chunks with slots on the fast tier are known by their number.
    fn may_have(&self, layer: u32, chunk: u32) -> bool {
        let state = self.shard.state.borrow();
        let key = (layer, chunk);
        self.class != Class::Fast
            || self.shard.surveying.get()
            || state.dirty_chunks.contains(&key)
            || state.shadow_chunks.contains(&key)
    }

    /// Breaks off when all is done, or nothing more can be.
    async fn chunk(&mut self, layer: u32, chunk: u32) -> Result<ControlFlow<()>, IoError> {
        let shard = self.shard;
        let room = shard.journal_room(Work::Mover).await?;
        let Ok(Some(leaf)) = shard.leaf(layer, chunk, false).await else {
            return Ok(ControlFlow::Continue(()));
        };
        // What other work has stays where it is: its group is not empty, this time.
        let Some(busy) = Busy::try_new(&leaf) else {
            return Ok(ControlFlow::Continue(()));
        };
        let (copies, blocks) = self.here(&leaf.page.borrow());
        let (copied, count) = (copies.count() as u64, blocks.len());
        if copied == 0 && count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        shard.apply_evict(layer, chunk, &leaf, copies)?;
        self.left = self.left.saturating_sub(copied);
        let mut runs = Vec::new();
        if count > 0 {
            if !shard.try_slots(self.class, count, &mut runs) {
                return Ok(ControlFlow::Break(()));
            }
            let mut job = Job::new(
                shard,
                (layer, chunk),
                &leaf,
                busy,
                blocks,
                Target::Slots(runs),
            );
            let copied = shard.copy_down(&mut job).await;
            if copied.is_err() || job.blocks.is_empty() {
                shard.drop_target(&job);
                copied?;
            } else {
                shard.settle_demotion(&job)?;
            }
            self.left = self.left.saturating_sub(count as u64);
        }
        drop(room);
        if self.left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        match shard.is_space_awaited() {
            true => shard.handle.yield_now().await,
            false => self.pace.wait(1).await,
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Copies of what is at home, and blocks that are nowhere else, in groups that are to be empty.
    fn here(&self, page: &ChunkPage) -> (BlockMask, Vec<Moving>) {
        let state = self.shard.state.borrow();
        let (mut copies, mut blocks) = (BlockMask::default(), Vec::new());
        for block in (0..CHUNK_BLOCKS).filter(|block| state.alloc.is_leaving(page.slot(*block))) {
            match page.state(block) {
                BlockState::Shadow => copies.set(block),
                _ => blocks.push(Moving::of(page, block)),
            }
        }
        (copies, blocks)
    }
}
