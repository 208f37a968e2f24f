//! The walk through a shard's trees: volumes in the order of their numbers, then its own.

use super::report::{Scrub, ScrubPoint};
use crate::checkpoint::root::OwnTree;
use crate::checkpoint::writer::Which;
use crate::maintenance::progress::Progress;
use crate::maintenance::upkeep::Throttle;
use crate::shard::state::Shard;
use block::{ErrorKind, IoError};
use format::{DIRECTORY, HOMES, PagePtr, SLOTS};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Keys examined between two readings of the clock.
const BATCH: usize = 32;

/// One shard's part of a scrub while it runs.
pub(crate) struct Part<'a> {
    pub scrub: &'a Scrub,
    pub progress: &'a Progress,
    /// The next checkpoint has to rewrite something.
    pub renew: Cell<bool>,
}

impl Part<'_> {
    /// Counts what was read: bytes from drives, and copies checked.
    pub(crate) fn count(&self, bytes: u64, copies: u64) {
        self.progress.done.fetch_add(bytes, Ordering::Relaxed);
        self.scrub.blocks.fetch_add(copies, Ordering::Relaxed);
    }
}

impl Shard {
    /// Scrubs from `from` on for about `slice_ns`, until it is paused, or to the end. Returns where to continue; `None` once
    /// the whole shard was examined.
    ///
    /// # Errors
    /// When a drive does not respond or is gone, so that its content is unknown.
    pub async fn scrub(
        &self,
        from: ScrubPoint,
        slice_ns: u64,
        scrub: &Scrub,
        progress: &Progress,
    ) -> Result<Option<ScrubPoint>, IoError> {
        let until = self.handle.now_ns().saturating_add(slice_ns);
        let share = scrub.rate / scrub.working.load(Ordering::Relaxed).max(1);
        let mut throttle = Throttle::scrub(&self.upkeep, share);
        let part = Part {
            scrub,
            progress,
            renew: Cell::new(false),
        };
        let mut at = from;
        let mut before = None;
        let ended = loop {
            if progress.is_cancelled()
                || progress.is_paused()
                || self.lifecycle.is_closing()
                || self.handle.now_ns() >= until
            {
                break false;
            }
            self.check()?;
            let Some(which) = self.owner_from(&mut at) else {
                break true;
            };
            let owner = at.owner;
            let next = self
                .scrub_some(which, at, &mut before, &part, &mut throttle)
                .await?;
            match next {
                Some(key) => at.key = key,
                None => {
                    at = ScrubPoint {
                        owner: owner.wrapping_add(1),
                        key: 0,
                    };
                    before = None;
                    if owner == DIRECTORY {
                        break true;
                    }
                }
            }
        };
        if ended {
            self.scrub_records(&part).await?;
        }
        if part.renew.get() {
            self.checkpoint().await?;
        }
        Ok((!ended).then_some(at))
    }

    /// The tree at `at`, or the first one after it, to which `at` is moved.
    fn owner_from(&self, at: &mut ScrubPoint) -> Option<Which> {
        let state = self.state.borrow();
        let volume = state.volumes.range(at.owner..).next().map(|(id, _)| *id);
        let own = [HOMES, SLOTS, DIRECTORY]
            .into_iter()
            .find(|own| *own >= at.owner);
        let owner = volume.or(own)?;
        if owner != at.owner {
            *at = ScrubPoint { owner, key: 0 };
        }
        Some(match owner {
            DIRECTORY => Which::Own(OwnTree::Directory),
            SLOTS => Which::Own(OwnTree::Slots),
            HOMES => Which::Own(OwnTree::Homes),
            volume => Which::Volume(volume),
        })
    }

    /// Scrubs some keys of a tree from `at` on; returns the next key, none at the tree's end.
    async fn scrub_some(
        &self,
        which: Which,
        at: ScrubPoint,
        before: &mut Option<u32>,
        part: &Part<'_>,
        throttle: &mut Throttle<'_>,
    ) -> Result<Option<u32>, IoError> {
        let (keys, need) = self.with_tree(which, |tree| tree.scan(at.key, BATCH));
        if let (true, Some(need)) = (keys.is_empty(), need) {
            return self.scrub_node_to_load(which, at.key, need, part).await;
        }
        self.scrub_pages(which, &keys, *before, part, throttle)
            .await?;
        if let Which::Volume(volume) = which {
            for chunk in &keys {
                let progress = part.progress;
                if progress.is_cancelled() || progress.is_paused() || self.lifecycle.is_closing() {
                    return Ok(Some(*chunk));
                }
                self.scrub_chunk(volume, *chunk, part, throttle).await?;
            }
        }
        *before = keys.last().copied();
        Ok(keys.last().and_then(|last| last.checked_add(1)))
    }

    /// A node has to be loaded before the walk continues. One without an intact copy is counted,
    /// and its subtree is skipped.
    async fn scrub_node_to_load(
        &self,
        which: Which,
        from: u32,
        (level, key, ptr): (u8, u32, PagePtr),
        part: &Part<'_>,
    ) -> Result<Option<u32>, IoError> {
        let Which::Volume(volume) = which else {
            // The shard's own trees were loaded whole when the pool was opened.
            return Ok(None);
        };
        match self.load(volume, level, key, ptr).await {
            Ok(()) => Ok(Some(from)),
            Err(error) if error.kind == ErrorKind::Medium => {
                self.note_lost_page(which, level, key, ptr, part);
                let beneath = 1u64 << (8 * u32::from(level));
                Ok(u32::try_from(u64::from(key) + beneath).ok())
            }
            Err(error) => Err(error),
        }
    }
}
