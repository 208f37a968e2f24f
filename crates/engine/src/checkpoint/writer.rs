//! Checkpoints: every changed page is written elsewhere, then one record makes them valid.
//!
//! A page may be newer than the point from which recovery replays the journal again: each record
//! sets what it names to a state, so replaying it again ends in the same state. What must not
//! happen is a page that is newer than the durable journal, so a barrier comes before the record.

use super::root::OwnTree;
use crate::map::radix::Tree;
use crate::shard::state::{DIRECTORY, HOMES, SLOTS, Shard, drive_error};
use crate::space::{Class, GroupKey, NO_PAGE};
use crate::vdrive::Purpose;
use block::{DmaBuf, DriveError, ErrorKind, IoError};
use format::{Checkpoint, HomesPage, PAGE, Page, PagePtr, SlotsPage, VolumePage};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use units::mutation::{Mutation, is_on};
use units::{Place, VdriveId};

/// Pages written together.
const BATCH: usize = 256;
/// Rounds of giving places to pages that give places to pages.
const ROUNDS: usize = 1000;

/// Pages to write, and the places of those that they replace.
#[derive(Default)]
struct Work {
    generation: u64,
    writes: Vec<(Place, Page)>,
    freed: Vec<Place>,
}

impl Work {
    /// A page goes to its place with the next writes; what points to it from now on.
    fn put(&mut self, place: Place, page: Page) -> PagePtr {
        let ptr = PagePtr {
            place,
            crc: page.crc(),
            hint: 0,
        };
        self.writes.push((place, page));
        ptr
    }
}

/// A page of one of the shard's own trees, or a node of a volume's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Volume(u32),
    Own(OwnTree),
}

impl Shard {
    /// Writes a checkpoint; when one is being written, waits for it and writes another.
    ///
    /// # Errors
    /// A drive's error, or `NoSpace` in the metadata region: the shard fails with it.
    pub async fn checkpoint(&self) -> Result<(), IoError> {
        self.pause_checkpoints().await?;
        let result = match self.pages_for_checkpoint().await {
            Ok(()) => self.write_checkpoint().await,
            Err(failed) => Err(failed),
        };
        if let Err(error) = &result {
            self.fail(error);
        }
        self.resume_checkpoints();
        result
    }

    /// Prevents checkpoints until it is dropped; waits for the one in progress.
    ///
    /// # Errors
    /// Why the shard has failed.
    pub(crate) async fn pause_checkpoints(&self) -> Result<(), IoError> {
        self.no_checkpoint().await?;
        self.checkpoints.take();
        Ok(())
    }

    /// Waits until no checkpoint is being written.
    ///
    /// # Errors
    /// Why the shard has failed.
    pub(crate) async fn no_checkpoint(&self) -> Result<(), IoError> {
        loop {
            let ended = self.checkpoints.until_ended();
            self.check()?;
            if !self.checkpoints.is_taken() {
                return Ok(());
            }
            ended.await;
        }
    }

    pub(crate) fn resume_checkpoints(&self) {
        self.checkpoints.give_back();
        self.reservations.wake();
    }

    async fn write_checkpoint(&self) -> Result<(), IoError> {
        let (from, slots_dropped, homes_dropped, mut work) = {
            let mut state = self.state.borrow_mut();
            state.journal.seal();
            let generation = state.root.generation() + 1;
            let (slots, homes) = state.alloc.begin_checkpoint(generation);
            let mut work = Work {
                generation,
                ..Work::default()
            };
            for key in &slots {
                let tree = state.root.tree(OwnTree::Slots);
                let old = tree.set_ptr(key.0, NO_PAGE);
                if old.place.is_some() {
                    work.freed.push(old.place);
                    state.alloc.touch(old.place);
                }
            }
            (state.journal.bounds().next, slots, homes, work)
        };
        self.write_map_pages(&mut work).await?;
        self.write_volume_nodes(&mut work).await?;
        self.write_directory(&mut work).await?;
        self.write_homes(&mut work).await?;
        self.write_slots(&mut work)?;
        self.send(&mut work).await?;
        if !is_on(Mutation::CheckpointBarrier) {
            self.barrier().await?;
        }
        // A barrier with nothing to do flushes nothing, and the pages have to be durable first.
        let meta = self.vdrive(VdriveId(0))?;
        if !is_on(Mutation::CheckpointFlush) && !is_on(Mutation::CheckpointBarrier) {
            let flushed = meta.flush().await;
            flushed.map_err(|error| drive_error(error, "the metadata region cannot be flushed"))?;
            // An opening gives the record to every member that counts: one that lacks pages must not by then.
            if !is_on(Mutation::CheckpointAlone) && !self.shared.members.recorded().await {
                let text = "no label can record that a drive lacks pages of the checkpoint";
                return Err(IoError::new(ErrorKind::Device, text));
            }
        }
        self.write_record(&work, from).await?;
        let mut state = self.state.borrow_mut();
        state.root.advance(work.generation);
        state.journal.truncate(from);
        state.alloc.give_groups(&slots_dropped);
        state.alloc.give_groups(&homes_dropped);
        // A load that began before may still be reading a page that was replaced.
        work.freed
            .iter()
            .for_each(|place| state.deferred_frees.slots(*place, 1));
        let sequence = state.journal.target();
        state.deferred_frees.seal(sequence);
        drop(state);
        self.note_mark();
        self.release_space();
        self.wal.mark_soon(self.handle.now_ns());
        Ok(())
    }

    fn page_place(&self) -> Result<Place, IoError> {
        let mut runs = Vec::new();
        let found = self
            .state
            .borrow_mut()
            .alloc
            .take_slots(Class::Meta, 1, &mut runs);
        if found == 0 {
            return Err(IoError::new(
                ErrorKind::NoSpace,
                "the metadata region has no free page",
            ));
        }
        Ok(runs[0].place)
    }

    fn drop_page(&self, work: &mut Work, ptr: PagePtr) {
        if ptr.place.is_some() {
            if is_on(Mutation::CheckpointPages) {
                let run = crate::space::Run {
                    place: ptr.place,
                    count: 1,
                };
                return self.state.borrow_mut().alloc.give_back(run);
            }
            work.freed.push(ptr.place);
            self.state.borrow_mut().alloc.touch(ptr.place);
        }
    }

    async fn send(&self, work: &mut Work) -> Result<(), IoError> {
        let mut writes = std::mem::take(&mut work.writes);
        writes.sort_by_key(|(place, _)| *place);
        let meta = self.vdrive(VdriveId(0))?;
        for batch in writes.chunks(BATCH) {
            let runs = batch.chunk_by(|left, right| left.0.block() + 1 == right.0.block());
            let sends = runs.map(|run| {
                let mut joined: DmaBuf = self.handle.dma().get(run.len() * PAGE);
                for (index, (_, page)) in run.iter().enumerate() {
                    joined[index * PAGE..][..PAGE].copy_from_slice(page.bytes());
                }
                meta.write(run[0].0.block(), joined, Purpose::Metadata)
            });
            let results: Result<(), DriveError> = join_all(sends).await.into_iter().collect();
            results.map_err(|error| drive_error(error, "the metadata region cannot be written"))?;
            // All of it at the end would have every barrier meanwhile wait for all of it.
            if meta.flush_is_due(u64::MAX) {
                let flushed = meta.flush().await;
                flushed
                    .map_err(|error| drive_error(error, "the metadata region cannot be flushed"))?;
            }
        }
        Ok(())
    }

    /// Chunks' pages that have changed. A page counts as unchanged from the moment it is copied.
    async fn write_map_pages(&self, work: &mut Work) -> Result<(), IoError> {
        let dirty = self.state.borrow_mut().dirty_pages.take();
        // Waiters for fewer changed pages continue.
        self.reservations.wake();
        for batch in dirty.chunks(BATCH) {
            for (volume, chunk, map_page) in batch {
                let counts = self.count(&map_page.page.borrow());
                // Zeroes hide what is beneath: only where nothing is, they need no page.
                let stands = {
                    let state = self.state.borrow();
                    let entry = state.volumes.get(volume);
                    entry.is_some_and(|entry| entry.parent != 0)
                };
                let empty = counts.mapped() == 0 && map_page.page.borrow().home().is_none();
                let hides = stands && !is_on(Mutation::ZeroesDropped);
                let empty = empty && (!hides || map_page.freed.get());
                let ptr = if empty {
                    NO_PAGE
                } else {
                    self.copy_page(work, map_page)?
                };
                if !is_on(Mutation::LeafForgotten) {
                    map_page.dirty.set(false);
                }
                let mut state = self.state.borrow_mut();
                state.dirty_pages.placed();
                let Some(entry) = state.volumes.get_mut(volume) else {
                    continue;
                };
                entry.disk_counts += counts;
                entry.disk_counts -= map_page.disk_counts.replace(counts);
                entry.dirty = true;
                let hint = u16::from(counts.fast > 0) | u16::from(counts.clean > 0) << 1;
                let old = entry.tree.set_ptr(*chunk, PagePtr { hint, ..ptr });
                drop(state);
                self.drop_page(work, old);
            }
            // The batch keeps its pages in memory until they are on the drive.
            self.send(work).await?;
            if is_on(Mutation::LeafForgotten) {
                batch
                    .iter()
                    .for_each(|(_, _, map_page)| map_page.dirty.set(false));
            }
        }
        Ok(())
    }

    fn copy_page(
        &self,
        work: &mut Work,
        map_page: &crate::map::page::MapPage,
    ) -> Result<PagePtr, IoError> {
        let place = self.page_place()?;
        let mut page = map_page.page.borrow_mut();
        let header = page.page().header().expect("a chunk's page has a header");
        page.page_mut().set_header(format::PageHeader {
            generation: work.generation,
            ..header
        });
        let page = page.page().clone();
        let ptr = work.put(place, page);
        Ok(ptr)
    }

    /// Writes the changed nodes of a tree, from the leaves' parents up; false when there are none.
    fn write_nodes(&self, work: &mut Work, which: Which) -> Result<bool, IoError> {
        let mut worked = false;
        for level in Tree::<()>::levels() {
            for key in self.dirty_nodes(which, level) {
                self.write_node(work, which, level, key)?;
                worked = true;
            }
        }
        Ok(worked)
    }

    fn write_node(
        &self,
        work: &mut Work,
        which: Which,
        level: u8,
        key: u32,
    ) -> Result<(), IoError> {
        let generation = work.generation;
        let (page, old) = self.with_tree(which, |tree| {
            (
                tree.encode(level, key, generation),
                tree.node_ptr(level, key),
            )
        });
        let ptr = match page {
            None => NO_PAGE,
            Some(page) => {
                let place = self.page_place()?;
                work.put(place, page)
            }
        };
        self.with_tree(which, |tree| tree.node_written(level, key, ptr));
        self.drop_page(work, old);
        Ok(())
    }

    fn dirty_nodes(&self, which: Which, level: u8) -> Vec<u32> {
        self.with_tree(which, |tree| tree.dirty_nodes(level))
    }

    pub(crate) fn with_tree<T>(&self, which: Which, act: impl FnOnce(&mut dyn AnyTree) -> T) -> T {
        let mut state = self.state.borrow_mut();
        match which {
            Which::Volume(id) => act(&mut state.volumes.get_mut(&id).expect("a known volume").tree),
            Which::Own(tree) => act(state.root.tree(tree)),
        }
    }

    async fn write_volume_nodes(&self, work: &mut Work) -> Result<(), IoError> {
        let volumes: Vec<u32> = self.state.borrow().volumes.keys().copied().collect();
        for id in volumes {
            // Pages that changed since theirs were written have nodes that count as changed, too.
            let worked = self.write_nodes(work, Which::Volume(id))?;
            if let Some(entry) = self.state.borrow_mut().volumes.get_mut(&id) {
                entry.dirty |= worked && !is_on(Mutation::NodesUnnamed);
            }
            self.send(work).await?;
        }
        Ok(())
    }

    async fn write_directory(&self, work: &mut Work) -> Result<(), IoError> {
        let changed: Vec<_> = {
            let mut state = self.state.borrow_mut();
            let changed = state.volumes.iter_mut().filter_map(|(id, entry)| {
                let dirty = std::mem::take(&mut entry.dirty);
                dirty.then(|| (*id, entry.tree.root(), entry.disk_counts))
            });
            changed.collect()
        };
        for (id, root, counts) in changed {
            let ptr = if root.place.is_none() {
                NO_PAGE
            } else {
                let place = self.page_place()?;
                let header = VolumePage::header(DIRECTORY, id, work.generation);
                let page = VolumePage::encode(header, root, counts);
                work.put(place, page)
            };
            self.set_own_ptr(work, OwnTree::Directory, id, ptr);
        }
        self.write_nodes(work, Which::Own(OwnTree::Directory))?;
        self.send(work).await
    }

    /// A page of an own tree has its place now; the one that it replaces is dropped.
    fn set_own_ptr(&self, work: &mut Work, of: OwnTree, key: u32, ptr: PagePtr) {
        let old = self.state.borrow_mut().root.tree(of).set_ptr(key, ptr);
        self.drop_page(work, old);
    }

    async fn write_homes(&self, work: &mut Work) -> Result<(), IoError> {
        let (pages, holes) = {
            let mut state = self.state.borrow_mut();
            (
                state.alloc.take_dirty_homes(),
                state.alloc.holes(&state.deferred_frees, &[]),
            )
        };
        for key in pages {
            let groups = self.state.borrow().alloc.homes_for_checkpoint(key, &holes);
            let ptr = match groups {
                None => NO_PAGE,
                Some(groups) => {
                    let place = self.page_place()?;
                    let page =
                        HomesPage::encode(HomesPage::header(HOMES, key, work.generation), &groups);
                    work.put(place, page)
                }
            };
            self.set_own_ptr(work, OwnTree::Homes, key, ptr);
        }
        self.write_nodes(work, Which::Own(OwnTree::Homes))?;
        self.send(work).await
    }

    /// Bitmaps of slots, last: they include the pages of this very checkpoint. Places are given
    /// first, until no more bitmap changes by it; then all is copied without a pause.
    fn write_slots(&self, work: &mut Work) -> Result<(), IoError> {
        let mut leaves: BTreeMap<GroupKey, Place> = BTreeMap::new();
        let mut nodes: BTreeMap<(u8, u32), Place> = BTreeMap::new();
        for round in 0.. {
            if round == ROUNDS {
                return Err(IoError::new(
                    ErrorKind::Device,
                    "the space bitmaps do not converge",
                ));
            }
            if !self.place_slots(work, &mut leaves, &mut nodes)? {
                break;
            }
        }
        let mut state = self.state.borrow_mut();
        let holes = state.alloc.holes(&state.deferred_frees, &work.freed);
        for (key, place) in leaves {
            let bits = state.alloc.slots_for_checkpoint(key, &holes);
            let page = SlotsPage::encode(SlotsPage::header(SLOTS, key.0, work.generation), &bits);
            let ptr = work.put(place, page);
            state.root.tree(OwnTree::Slots).set_ptr(key.0, ptr);
        }
        for ((level, key), place) in nodes {
            let tree = state.root.tree(OwnTree::Slots);
            let page = tree.encode(level, key, work.generation);
            let page = page.expect("a node got its place because something is beneath it");
            let ptr = work.put(place, page);
            tree.node_written(level, key, ptr);
        }
        Ok(())
    }

    /// Gives places to bitmaps and nodes that have changed and have none yet; the checksums in the
    /// pointers follow later. False when there was nothing to do.
    fn place_slots(
        &self,
        work: &mut Work,
        leaves: &mut BTreeMap<GroupKey, Place>,
        nodes: &mut BTreeMap<(u8, u32), Place>,
    ) -> Result<bool, IoError> {
        let mut worked = false;
        let dirty = self.state.borrow().alloc.dirty_slots();
        for key in dirty {
            if let Entry::Vacant(slot) = leaves.entry(key) {
                worked = true;
                let place = *slot.insert(self.page_place()?);
                let ptr = PagePtr {
                    place,
                    crc: 0,
                    hint: 0,
                };
                self.set_own_ptr(work, OwnTree::Slots, key.0, ptr);
            }
        }
        for level in Tree::<()>::levels() {
            for key in self.dirty_nodes(Which::Own(OwnTree::Slots), level) {
                let Entry::Vacant(slot) = nodes.entry((level, key)) else {
                    continue;
                };
                worked = true;
                let (old, empty) = {
                    let mut state = self.state.borrow_mut();
                    let tree = state.root.tree(OwnTree::Slots);
                    (tree.node_ptr(level, key), tree.is_empty_node(level, key))
                };
                let ptr = if empty {
                    NO_PAGE
                } else {
                    PagePtr {
                        place: *slot.insert(self.page_place()?),
                        crc: 0,
                        hint: 0,
                    }
                };
                let mut state = self.state.borrow_mut();
                let tree = state.root.tree(OwnTree::Slots);
                tree.node_written(level, key, ptr);
                drop(state);
                self.drop_page(work, old);
            }
        }
        Ok(worked)
    }

    async fn write_record(&self, work: &Work, from: u64) -> Result<(), IoError> {
        let record = {
            let state = self.state.borrow();
            let [directory, slots, homes] = state.root.trees().map(|(tree, _)| tree.root());
            Checkpoint {
                pool: self.config.pool,
                shard: self.config.shard,
                generation: work.generation,
                epoch: state.journal.bounds().epoch,
                journal_from: from,
                directory,
                slots,
                homes,
            }
        };
        let mut buf = self.handle.dma().get(PAGE);
        buf.copy_from_slice(&record.encode());
        let meta = self.vdrive(VdriveId(0))?;
        let block = self.checkpoint_block(work.generation);
        let explain = |error| drive_error(error, "the checkpoint cannot be written");
        meta.write(block, buf, Purpose::Metadata)
            .await
            .map_err(explain)?;
        meta.flush().await.map_err(explain)
    }

    /// Where the checkpoint of a generation is in the metadata region.
    pub(crate) fn checkpoint_block(&self, generation: u64) -> u64 {
        format::checkpoint_block(self.config.shard.0, generation)
    }
}

/// The operations of checkpoints and scrubs on a tree, whatever its leaves are in memory.
pub(crate) trait AnyTree {
    fn dirty_nodes(&self, level: u8) -> Vec<u32>;
    fn encode(&mut self, level: u8, key: u32, generation: u64) -> Option<Page>;
    fn node_ptr(&mut self, level: u8, key: u32) -> PagePtr;
    fn node_written(&mut self, level: u8, key: u32, ptr: PagePtr);
    fn ptr(&self, key: u32) -> Option<PagePtr>;
    fn scan(&self, from: u32, limit: usize) -> (Vec<u32>, Option<(u8, u32, PagePtr)>);
    fn renew_nodes(&mut self, key: u32) -> bool;
}

impl<L> AnyTree for Tree<L> {
    fn dirty_nodes(&self, level: u8) -> Vec<u32> {
        self.dirty_nodes(level)
    }

    fn encode(&mut self, level: u8, key: u32, generation: u64) -> Option<Page> {
        self.encode(level, key, generation)
    }

    fn node_ptr(&mut self, level: u8, key: u32) -> PagePtr {
        self.node_ptr(level, key)
    }

    fn node_written(&mut self, level: u8, key: u32, ptr: PagePtr) {
        self.node_written(level, key, ptr);
    }

    fn ptr(&self, key: u32) -> Option<PagePtr> {
        self.ptr(key)
    }

    fn scan(&self, from: u32, limit: usize) -> (Vec<u32>, Option<(u8, u32, PagePtr)>) {
        self.scan(from, limit)
    }

    fn renew_nodes(&mut self, key: u32) -> bool {
        self.renew_nodes(key)
    }
}
