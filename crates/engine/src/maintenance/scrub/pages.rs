//! The scrub of pages: chunks' maps, the nodes above them, and the shard's own trees.

use super::report::{FaultPlace, ScrubFault};
use super::walk::Part;
use crate::checkpoint::root::OwnTree;
use crate::checkpoint::writer::Which;
use crate::maintenance::upkeep::Throttle;
use crate::map::radix::{Lookup, Tree};
use crate::shard::state::{Shard, drive_error};
use crate::space::GroupKey;
use crate::vdrive::Verified;
use block::{DriveError, IoError};
use format::{PAGE, PagePtr, crc32c, first_key};
use futures_util::future::join_all;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{CHUNK, VdriveId};

/// Pages read together.
const BATCH: usize = 16;

/// A page: its level (0 for a leaf), its first key, and where it lies.
type PageAt = (u8, u32, PagePtr);

impl Shard {
    /// Scrubs the leaves of `keys` and the nodes above them, but for those above `before`.
    pub(super) async fn scrub_pages(
        &self,
        which: Which,
        keys: &[u32],
        before: Option<u32>,
        part: &Part<'_>,
        throttle: &mut Throttle<'_>,
    ) -> Result<(), IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let mut before = before;
        for keys in keys.chunks(BATCH) {
            throttle
                .wait((keys.len() * PAGE * meta.copies()) as u64)
                .await;
            // Its pointers lead to pages that are still to be written.
            if !is_on(Mutation::ScrubUnwritten) {
                self.no_checkpoint().await?;
            }
            if self.is_gone(which) {
                return Ok(());
            }
            // The space of the pages is not reused before they were read.
            let read_epoch = self.state.borrow_mut().deferred_frees.begin_read();
            let pages = self.pages_of(which, keys, before);
            let reads = pages.iter().map(|(level, key, ptr)| async {
                let check = |_: usize, bytes: &[u8]| crc32c(bytes) == ptr.crc;
                let counts = |_: usize| self.ptr_of(which, *level, *key) == Some(*ptr);
                meta.verify(ptr.place.block(), 1, &check, &counts).await
            });
            let results = join_all(reads).await;
            self.end_read(read_epoch);
            for (page, result) in pages.iter().zip(results) {
                let found = result.map_err(|error| drive_error(error, "the scrub has stopped"))?;
                part.count(found.bytes, found.bytes / PAGE as u64);
                self.settle_page(which, *page, &found, meta.copies(), part);
            }
            before = keys.last().copied();
        }
        Ok(())
    }

    fn is_gone(&self, which: Which) -> bool {
        match which {
            Which::Volume(volume) => !self.state.borrow().volumes.contains_key(&volume),
            _ => false,
        }
    }

    fn ptr_of(&self, which: Which, level: u8, key: u32) -> Option<PagePtr> {
        if self.is_gone(which) {
            return None;
        }
        self.with_tree(which, |tree| match level {
            0 => tree.ptr(key),
            _ => Some(tree.node_ptr(level, key)),
        })
    }

    fn pages_of(&self, which: Which, keys: &[u32], before: Option<u32>) -> Vec<PageAt> {
        let mut pages = Vec::new();
        let mut before = before;
        for key in keys {
            for level in Tree::<()>::levels() {
                let first = first_key(*key, level);
                if before.is_none_or(|before| first_key(before, level) != first) {
                    pages.push((level, first));
                }
            }
            pages.push((0, *key));
            before = Some(*key);
        }
        let ptr = |(level, key): (u8, u32)| {
            let ptr = self.ptr_of(which, level, key)?;
            ptr.place.is_some().then_some((level, key, ptr))
        };
        pages.into_iter().filter_map(ptr).collect()
    }

    fn settle_page(
        &self,
        which: Which,
        (level, key, ptr): PageAt,
        found: &Verified,
        copies: usize,
        part: &Part<'_>,
    ) {
        let mended = found.bad.iter().any(|bad| bad.mended) || found.bad.len() < copies;
        let renewed = !found.bad.is_empty() && !mended && self.renew_page(which, level, key);
        if renewed {
            part.renew.set(true);
        } else if !mended {
            part.scrub.lost.fetch_add(1, Ordering::Relaxed);
        }
        for bad in &found.bad {
            let repaired = bad.mended || renewed;
            self.note_page(
                which,
                (level, key, ptr),
                bad.part,
                (bad.error, repaired),
                part,
            );
        }
    }

    /// A page without an intact copy that is not in memory.
    pub(super) fn note_lost_page(
        &self,
        which: Which,
        level: u8,
        key: u32,
        ptr: PagePtr,
        part: &Part<'_>,
    ) {
        part.scrub.lost.fetch_add(1, Ordering::Relaxed);
        let what = (DriveError::Checksum, false);
        self.note_page(which, (level, key, ptr), 0, what, part);
    }

    fn note_page(
        &self,
        which: Which,
        (level, key, ptr): PageAt,
        of: usize,
        (error, repaired): (DriveError, bool),
        part: &Part<'_>,
    ) {
        let volume = match which {
            Which::Volume(volume) => Some(volume),
            _ => None,
        };
        let chunks = volume.map_or(0, |_| 1u64 << (8 * u32::from(level)));
        part.scrub.note(ScrubFault {
            volume,
            offset: volume.map_or(0, |_| u64::from(key) * CHUNK as u64),
            length: chunks * CHUNK as u64,
            place: FaultPlace::Part {
                vdrive: ptr.place.vdrive(),
                part: of,
                block: ptr.place.block(),
            },
            error,
            repaired,
        });
    }

    /// Has the next checkpoint rewrite a page, if its content is in memory.
    fn renew_page(&self, which: Which, level: u8, key: u32) -> bool {
        if self.is_gone(which) {
            return false;
        }
        if level > 0 {
            // The nodes above a key are loaded once it has been found.
            return self.with_tree(which, |tree| tree.renew_nodes(key));
        }
        let mut state = self.state.borrow_mut();
        match which {
            Which::Own(OwnTree::Slots) => state.alloc.renew_slots(GroupKey(key)),
            Which::Own(OwnTree::Homes) => state.alloc.renew_homes(key),
            Which::Own(OwnTree::Directory) => match state.volumes.get_mut(&key) {
                Some(entry) => entry.dirty = true,
                None => return false,
            },
            Which::Volume(volume) => {
                let map_page = match state
                    .volumes
                    .get(&volume)
                    .map(|entry| entry.tree.lookup(key))
                {
                    Some(Lookup::Loaded(map_page)) => map_page.clone(),
                    _ => return false,
                };
                self.mark_dirty(&mut state, volume, key, &map_page);
            }
        }
        true
    }
}
