//! Opening: the checkpoint that counts, and the shard's own trees as it has them.
//!
//! The newest checkpoint counts. Where pages of its trees are damaged on all members, the one before it does, if the journal
//! since that is whole up to where the newest one began: it contains everything that the newest one does. Pages that
//! the newest one replaced may have been reused since; such damage is detected by checksums, as always.

use crate::checkpoint::root::{CheckpointRoot, OwnTree};
use crate::map::radix::Tree;
use crate::shard::state::{DIRECTORY, HOMES, SLOTS, Shard, Volume, drive_error};
use crate::space::GroupKey;
use block::{ErrorKind, IoError};
use format::{
    Bounds, Checkpoint, HomesPage, NUMBERS_MAX, OutOfBounds, Page, PageHeader, PagePtr, SlotsPage,
    VolumePage,
};
use futures_util::future::join_all;
use units::VdriveId;
use units::mutation::{Mutation, is_on};

/// Pages read together.
const BATCH: usize = 128;

/// Pages of the shard's own trees, by key.
struct OwnPages {
    slots: Vec<(u32, Page)>,
    homes: Vec<(u32, Page)>,
    directory: Vec<(u32, Page)>,
}

/// The checkpoint that an opening starts from.
#[derive(Clone, Copy)]
pub(crate) struct OpenedFrom {
    pub checkpoint: Checkpoint,
    /// Pages of the journal below this number have to be there: a newer checkpoint, whose pages are damaged, held them.
    pub needed: u64,
}

impl Shard {
    /// Reads the last checkpoint and the shard's bitmaps of space, and claims its groups. All
    /// shards of a pool do this before any of them replays its journal.
    ///
    /// # Errors
    /// `Medium` when there is no valid checkpoint or a page is damaged on all members.
    pub async fn load_checkpoint(&self) -> Result<(), IoError> {
        let (newest, before) = self.read_checkpoints().await?;
        let mut from = OpenedFrom {
            checkpoint: newest,
            needed: newest.journal_from,
        };
        let mut pages = self.read_own_pages(&newest).await;
        // Another epoch's journal does not tell what the newest one holds.
        let stands_in = |before: &Checkpoint| {
            before.generation + 1 == newest.generation && before.epoch == newest.epoch
        };
        if let (Err(damaged), Some(before)) = (&pages, before.filter(stands_in))
            && damaged.kind == ErrorKind::Medium
        {
            let older = self.read_own_pages(&before).await;
            if older.is_ok() {
                tracing::warn!(
                    shard = self.config.shard.0,
                    %damaged,
                    "the newest checkpoint is damaged on every drive: the previous one is used, and the journal since"
                );
                from.checkpoint = before;
                pages = older;
            }
        }
        let pages = pages?;
        self.state.borrow_mut().opened_from = Some(from);
        self.take_over(&pages)
    }

    /// Begins with this checkpoint, and reads what its trees have; nothing of it is claimed yet.
    async fn read_own_pages(&self, checkpoint: &Checkpoint) -> Result<OwnPages, IoError> {
        {
            let mut state = self.state.borrow_mut();
            state.root = CheckpointRoot::named_by(checkpoint);
            state.journal.begin_at(checkpoint);
            state.alloc.begin_checkpoint(checkpoint.generation);
        }
        let slots = self.load_tree(
            |state| state.root.tree(OwnTree::Slots),
            SlotsPage::header,
            SLOTS,
        );
        let slots = slots.await?;
        let homes = self.load_tree(
            |state| state.root.tree(OwnTree::Homes),
            HomesPage::header,
            HOMES,
        );
        let homes = homes.await?;
        let directory = self.load_tree(
            |state| state.root.tree(OwnTree::Directory),
            VolumePage::header,
            DIRECTORY,
        );
        Ok(OwnPages {
            slots,
            homes,
            directory: directory.await?,
        })
    }

    /// Claims the groups that the bitmaps say are the shard's, and makes the layers of the directory known.
    fn take_over(&self, pages: &OwnPages) -> Result<(), IoError> {
        let taken = || IoError::new(ErrorKind::Medium, "a group of space belongs to two shards");
        let wrong = |found: OutOfBounds| {
            let text = format!("shard {}: {found}", self.config.shard);
            IoError::new(ErrorKind::Medium, text)
        };
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        for (key, page) in &pages.slots {
            let (key, bits) = (GroupKey(*key), SlotsPage::decode(page));
            state.alloc.check_slots(key, &bits).map_err(wrong)?;
            if !state.alloc.load_slots(key, bits) {
                return Err(taken());
            }
        }
        for (key, page) in &pages.homes {
            let groups = HomesPage::decode(page);
            state.alloc.check_homes(*key, &groups).map_err(wrong)?;
            if !state.alloc.load_homes(*key, &groups) {
                return Err(taken());
            }
        }
        for (key, page) in &pages.directory {
            let (root, counts) = VolumePage::decode(page);
            if !counts.is_possible() || *key == 0 || *key >= NUMBERS_MAX {
                let text = format!("the entry of volume {key} has an invalid number or counts");
                return Err(IoError::new(ErrorKind::Medium, text));
            }
            let volume = Volume::new(*key, root, counts, state.dirty_pages.nodes());
            state.volumes.insert(*key, volume);
        }
        Ok(())
    }

    /// The newest checkpoint on any member, and the one before it if that is there, too.
    async fn read_checkpoints(&self) -> Result<(Checkpoint, Option<Checkpoint>), IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let decode = |bytes: &[u8]| Checkpoint::decode(bytes, self.config.pool, self.config.shard);
        let mut best: Option<Checkpoint> = None;
        let mut other: Option<Checkpoint> = None;
        let mut newer = false;
        // Members may differ after a crash: all are examined, and the newest is taken. One that cannot
        // be read is as one that has none.
        let first = self.checkpoint_block(0).min(self.checkpoint_block(1));
        let copies = meta.read_members(first, 2).await.unwrap_or_default();
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
            match (found, best) {
                (Some(found), Some(known)) if !newer(known, found) => other = Some(found),
                (Some(found), known) => (best, other) = (Some(found), known),
                (None, _) => {}
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
        Ok((best, other))
    }

    /// Refuses a journal that ends before what a damaged checkpoint held.
    pub(super) fn check_stand_in(&self, end: u64) -> Result<(), IoError> {
        let from = self.state.borrow().opened_from;
        match from {
            Some(from) if end < from.needed => {
                let text = format!(
                    "shard {}: its newest checkpoint is damaged on every drive, and the journal since the one before it is \
                     incomplete: bring back a drive that has them, or copy the volumes out as they are with `convect restore`",
                    self.config.shard
                );
                Err(IoError::new(ErrorKind::Medium, text))
            }
            _ => Ok(()),
        }
    }

    /// A crash may have left the newest record on one member only. Every member gets it before anything is
    /// written that an older one needs: that member may be lost next. Only once the opening can no longer be refused.
    pub(super) async fn spread_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), IoError> {
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
        meta.read_every_member(block, &same)
            .await
            .map_err(explain)?;
        meta.flush().await.map_err(explain)
    }

    /// Every leaf page of one of the shard's own trees.
    async fn load_tree(
        &self,
        tree: impl Fn(&mut crate::shard::state::State) -> &mut Tree<()>,
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
}
