//! Opening: the last checkpoint, then the journal since.

use super::state::{DIRECTORY, HOMES, SLOTS, Shard, Volume, drive_error};
use crate::space::GroupKey;
use crate::tree::{DirtyNodes, Tree};
use block::{DmaBuf, ErrorKind, IoError};
use format::{
    Bounds, Checkpoint, HomesPage, JournalHeader, NUMBERS_MAX, OutOfBounds, Page, PageHeader,
    PagePtr, SlotsPage, VolumePage,
};
use futures_util::future::join_all;
use units::VdriveId;
use units::mutation::{Mutation, is_on};

/// Pages read together.
const BATCH: usize = 128;
/// Pages of the journal that are read first: then twice as many each time. It is often short.
const FIRST: u64 = 4;
const UNREADABLE: &str = "the journal cannot be read";

/// A page of the journal, its records as they lie there: a full journal has a million.
pub(super) struct JournalBody {
    pub header: JournalHeader,
    pub records: Box<[u8]>,
}

impl Shard {
    /// Writes the first checkpoint of a new pool.
    ///
    /// # Errors
    /// What a drive said.
    pub async fn format(&self) -> Result<(), IoError> {
        self.checkpoint().await?;
        self.state.borrow_mut().journal.use_tail();
        Ok(())
    }

    /// Reads the last checkpoint and the shard's bitmaps of space, and claims its groups. All
    /// shards of a pool do this before any of them replays its journal.
    ///
    /// # Errors
    /// `Medium` when there is no valid checkpoint or a page is damaged on all legs.
    pub async fn load_checkpoint(&self) -> Result<(), IoError> {
        let checkpoint = self.read_checkpoint().await?;
        {
            let mut state = self.state.borrow_mut();
            state.generation = checkpoint.generation;
            state.journal.epoch = checkpoint.epoch;
            state.journal.from = checkpoint.journal_from;
            state.journal.next = checkpoint.journal_from;
            state.journal.durable = checkpoint.journal_from;
            let own = DirtyNodes::default();
            state.directory = Tree::new(DIRECTORY, checkpoint.directory, &own);
            state.slots = Tree::new(SLOTS, checkpoint.slots, &own);
            state.homes = Tree::new(HOMES, checkpoint.homes, &own);
            state.alloc.begin_checkpoint(checkpoint.generation);
        }
        let taken = || IoError::new(ErrorKind::Medium, "a group of space belongs to two shards");
        let wrong = |found: OutOfBounds| {
            let text = format!("shard {}: {found}", self.config.shard);
            IoError::new(ErrorKind::Medium, text)
        };
        for (key, page) in self
            .load_tree(|state| &mut state.slots, SlotsPage::header, SLOTS)
            .await?
        {
            let (key, bits) = (GroupKey(key), SlotsPage::decode(&page));
            let alloc = &mut self.state.borrow_mut().alloc;
            alloc.check_slots(key, &bits).map_err(wrong)?;
            if !alloc.load_slots(key, bits) {
                return Err(taken());
            }
        }
        for (key, page) in self
            .load_tree(|state| &mut state.homes, HomesPage::header, HOMES)
            .await?
        {
            let groups = HomesPage::decode(&page);
            let alloc = &mut self.state.borrow_mut().alloc;
            alloc.check_homes(key, &groups).map_err(wrong)?;
            if !alloc.load_homes(key, &groups) {
                return Err(taken());
            }
        }
        let header = VolumePage::header;
        for (key, page) in self
            .load_tree(|state| &mut state.directory, header, DIRECTORY)
            .await?
        {
            let (root, counts) = VolumePage::decode(&page);
            if !counts.is_possible() || key >= NUMBERS_MAX {
                let text = format!(
                    "the entry of volume {key} counts more blocks, or volumes, than there can be"
                );
                return Err(IoError::new(ErrorKind::Medium, text));
            }
            let mut state = self.state.borrow_mut();
            let volume = Volume::new(key, root, counts, &state.dirty_nodes);
            state.volumes.insert(key, volume);
        }
        Ok(())
    }

    async fn read_checkpoint(&self) -> Result<Checkpoint, IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let decode = |bytes: &[u8]| Checkpoint::decode(bytes, self.config.pool, self.config.shard);
        let mut best: Option<Checkpoint> = None;
        let mut newer = false;
        // Legs may differ after a crash: all are looked at, and the newest is taken. One that cannot
        // be read is as one that has none.
        let first = self.checkpoint_block(0).min(self.checkpoint_block(1));
        let copies = meta.read_legs(first, 2).await.unwrap_or_default();
        for slot in 0..2 {
            let mut found: Option<Checkpoint> = None;
            for bytes in copies.iter().filter_map(|copy| copy[slot].as_ref()) {
                newer |= Checkpoint::is_newer(bytes, self.config.pool, self.config.shard);
                let copy = decode(bytes);
                if copy.map(|copy| copy.generation) > found.map(|found| found.generation) {
                    found = copy;
                }
            }
            let newer = |best: Checkpoint, found: Checkpoint| {
                (found.generation > best.generation) != is_on(Mutation::CheckpointOld)
            };
            if found.is_some_and(|found| best.is_none_or(|best| newer(best, found))) {
                best = found;
            }
        }
        if newer {
            let text = format!(
                "a newer version of Convect wrote the checkpoint of shard {}: use that version",
                self.config.shard
            );
            return Err(IoError::new(ErrorKind::Medium, text));
        }
        let best = best.ok_or_else(|| {
            let text = format!(
                "shard {} has no valid checkpoint on any drive",
                self.config.shard
            );
            IoError::new(ErrorKind::Medium, text)
        })?;
        self.spread_checkpoint(&best).await?;
        Ok(best)
    }

    /// A crash may have left the newest record on one leg only. Every leg gets it before anything is
    /// written that an older one needs: that leg may be lost next.
    async fn spread_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), IoError> {
        if is_on(Mutation::CheckpointOneLeg) {
            return Ok(());
        }
        let meta = self.vdrive(VdriveId(0))?;
        let block = self.checkpoint_block(checkpoint.generation);
        let same = |_: usize, bytes: &[u8]| {
            let found = Checkpoint::decode(bytes, self.config.pool, self.config.shard);
            found.as_ref() == Some(checkpoint)
        };
        let explain = |error| drive_error(error, "the checkpoint cannot be written");
        meta.read_every_leg(block, &same).await.map_err(explain)?;
        meta.flush().await.map_err(explain)
    }

    /// Every leaf page of one of the shard's own trees.
    async fn load_tree(
        &self,
        tree: impl Fn(&mut super::state::State) -> &mut Tree<()>,
        header: impl Fn(u32, u32, u64) -> PageHeader,
        owner: u32,
    ) -> Result<Vec<(u32, Page)>, IoError> {
        let mut pages = Vec::new();
        let mut from = Some(0u32);
        while let Some(start) = from {
            let (keys, need) = tree(&mut self.state.borrow_mut()).scan(start, BATCH);
            if let (true, Some((level, key, ptr))) = (keys.is_empty(), need) {
                let wanted = tree(&mut self.state.borrow_mut()).header(level, key);
                let page = self.read_page(ptr, wanted).await?;
                tree(&mut self.state.borrow_mut()).install(level, key, page);
                continue;
            }
            let ptrs: Vec<(u32, PagePtr)> = {
                let mut state = self.state.borrow_mut();
                let tree = tree(&mut state);
                keys.iter()
                    .filter_map(|key| tree.ptr(*key).map(|ptr| (*key, ptr)))
                    .collect()
            };
            let reads = ptrs
                .iter()
                .map(|(key, ptr)| self.read_page(*ptr, header(owner, *key, 0)));
            for ((key, _), page) in ptrs.iter().zip(join_all(reads).await) {
                pages.push((*key, page?));
            }
            from = keys.last().and_then(|last| last.checked_add(1));
        }
        Ok(pages)
    }

    /// Plays the journal since the checkpoint; nothing is made valid by it yet. All shards of a pool do
    /// this before any of them ends its recovery.
    ///
    /// # Errors
    /// What a drive said, or `Medium` when the journal contradicts the map, or has lost what was flushed.
    pub async fn replay_journal(&self) -> Result<(), IoError> {
        let pages = self.read_journal().await?;
        self.replay(pages).await?;
        self.settle_all();
        Ok(())
    }

    /// Writes a new checkpoint in a new epoch, so that what was found is found again, whatever happens
    /// next.
    ///
    /// # Errors
    /// What a drive said.
    pub async fn end_recovery(&self) -> Result<(), IoError> {
        if !is_on(Mutation::EpochKept) {
            self.state.borrow_mut().journal.epoch += 1;
        }
        if !is_on(Mutation::NoRecoveryCheckpoint) {
            self.checkpoint().await?;
        }
        self.state.borrow_mut().journal.use_tail();
        Ok(())
    }

    /// Pages of the journal from the checkpoint on, as far as they are whole and in order. A page
    /// is written several times while it fills, and a leg may have kept an earlier image of it, as the tail that
    /// the last process left may have a later one: the fullest counts.
    async fn read_journal(&self) -> Result<Vec<JournalBody>, IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let (base, ring, mut next, epoch, durable) = {
            let state = self.state.borrow();
            let journal = &state.journal;
            let durable = journal.durable_before();
            (
                journal.base,
                journal.ring,
                journal.next,
                journal.epoch,
                durable,
            )
        };
        let (from, mut batch) = (next, FIRST);
        let mut pages = Vec::new();
        let explain = |error| drive_error(error, UNREADABLE);
        while next - from < ring {
            let at = next % ring;
            let count = batch.min(ring - at).min(ring - (next - from)) as usize;
            batch = (2 * batch).min(BATCH as u64);
            let copies = meta.read_legs(base + at, count).await.map_err(explain)?;
            for index in 0..count {
                let mut fullest: Option<(JournalHeader, &[u8])> = None;
                let mut before: Option<&[u8]> = None;
                // What was durable the ring has. Where it has not, the drives were put back to what they were
                // before, and the tail tells of a later time.
                let left = match next >= durable {
                    true => self.state.borrow().journal.left_in_tail(next),
                    false => None,
                };
                let legs = copies.iter().filter_map(|copy| copy[index].as_deref());
                for bytes in legs.chain(left.as_deref()) {
                    // Legs mostly have the same.
                    if before.replace(bytes).is_some_and(|before| before == bytes) {
                        continue;
                    }
                    let Some(page) = self.open_journal_page(bytes, (epoch, next))? else {
                        continue;
                    };
                    if fullest.is_none_or(|(_, known)| page.1.len() > known.len()) {
                        fullest = Some(page);
                    }
                }
                let Some((header, records)) = fullest else {
                    let rest = copies.iter().flat_map(|copy| &copy[index..]);
                    self.check_end(rest, (epoch, next))?;
                    // Their memory is free for the next reads.
                    drop(copies);
                    self.look_beyond(next, (count - index) as u64, epoch)
                        .await?;
                    return Ok(pages);
                };
                let records = records.into();
                pages.push(JournalBody { header, records });
                next += 1;
            }
        }
        Ok(pages)
    }

    /// Looks at what lies behind the journal's end, of which `seen` pages were looked at already.
    ///
    /// A barrier is begun when [`BATCH`] pages wait for it, at the latest: so far on there is a
    /// page that was made after the one that would be the end was durable, if there is any.
    async fn look_beyond(&self, end: u64, mut seen: u64, epoch: u64) -> Result<(), IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let (base, ring) = {
            let state = self.state.borrow();
            (state.journal.base, state.journal.ring)
        };
        let wanted = (BATCH as u64).min(ring);
        while seen < wanted {
            let at = (end + seen) % ring;
            let count = (wanted - seen).min(ring - at);
            let copies = meta.read_legs(base + at, count as usize).await;
            let copies = copies.map_err(|error| drive_error(error, UNREADABLE))?;
            self.check_end(copies.iter().flatten(), (epoch, end))?;
            seen += count;
        }
        Ok(())
    }

    /// Refuses to take for the journal's end what was lost out of its middle: blocks after it
    /// tell when they hold a page that was made when this one was durable, or one of an epoch
    /// that began with a checkpoint that is not there any more.
    fn check_end<'a>(
        &self,
        blocks: impl Iterator<Item = &'a Option<DmaBuf>>,
        (epoch, end): (u64, u64),
    ) -> Result<(), IoError> {
        let (pool, shard) = (self.config.pool, self.config.shard);
        for bytes in blocks.flatten() {
            let Some(header) = JournalHeader::claimed(bytes, pool, shard) else {
                continue;
            };
            let what = if header.epoch > epoch {
                "its newest checkpoint is lost".to_owned()
            } else if header.epoch == epoch && header.sequence > end && header.durable_below > end {
                format!("page {end} of its journal is lost")
            } else {
                continue;
            };
            if JournalHeader::read(bytes, pool, shard).is_none() {
                continue;
            }
            let text = format!(
                "shard {shard}: {what} on every drive that has it, and with it writes that were \
                 flushed: bring back a drive that has them, or copy the volumes out as they are with \
                 `convect restore`"
            );
            return Err(IoError::new(ErrorKind::Medium, text));
        }
        Ok(())
    }

    /// The header and the records, as they lie there, of a page of the journal, if it is the one
    /// that is wanted.
    pub(super) fn open_journal_page<'a>(
        &self,
        bytes: &'a [u8],
        (epoch, sequence): (u64, u64),
    ) -> Result<Option<(JournalHeader, &'a [u8])>, IoError> {
        let (pool, shard) = (self.config.pool, self.config.shard);
        let header = JournalHeader::claimed(bytes, pool, shard);
        let wanted = |header: JournalHeader| {
            (header.epoch == epoch || is_on(Mutation::JournalEpoch))
                && (header.sequence == sequence || is_on(Mutation::JournalSequence))
        };
        if !header.is_some_and(wanted) {
            return Ok(None);
        }
        format::page_body(bytes, pool, shard)
            .map_err(|error| IoError::new(ErrorKind::Medium, error.to_string()))
    }
}
