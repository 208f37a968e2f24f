//! Operations on the journal: records are appended, persisted in the ring, and committed.

use super::journal::{JournalBounds, LeftTail};
use super::reservations::Room;
use super::tail_head::TailDrive;
use crate::shard::state::{Shard, State, drive_error};
use crate::space::Class;
use crate::vdrive::Purpose;
use block::{DmaBuf, DriveError, ErrorKind, IoError, LastingMemory, Lent};
use format::{PAGE, Record};
use futures_util::future::join_all;
use qos::Due;
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, VdriveId};

/// Pages of one write to the ring.
const WRITE_PAGES: usize = 64;
/// Pages that wait to be written before a barrier is begun.
pub(crate) const COMMIT_PAGES: usize = 128;

/// Kinds of requests for room in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// An operation of a host, which is due so.
    Host(Due),
    /// Demotion, eviction, promotion: they make space, or are few.
    Mover,
}

impl Shard {
    /// The shard's number, to index with.
    pub(crate) fn index(&self) -> usize {
        self.config.shard.0.into()
    }

    /// The left tail of this shard's journal, before it is replayed.
    pub(crate) fn set_left(&self, left: LeftTail) {
        self.state.borrow_mut().journal.set_left(left);
    }

    /// The memory of a tail, still unused, says what it is from now on: of this shard after its recovery.
    pub(crate) fn begin_tail(
        &self,
        memory: &dyn LastingMemory,
        opening: u128,
        drives: Vec<TailDrive>,
    ) {
        let head = self.state.borrow().journal.tail_head(opening, drives);
        head.write(memory.words());
    }

    /// From now on what is recorded goes to that tail as well, and nothing is needed of what was left.
    pub fn use_tail(&self, memory: Option<Arc<dyn LastingMemory>>) {
        self.state.borrow_mut().journal.use_tail(memory);
    }

    /// Adds a record to the journal, in memory.
    ///
    /// # Errors
    /// When the ring is full: the shard fails, since going on would overwrite what recovery needs.
    pub(crate) fn append(&self, state: &mut State, record: &Record) -> Result<(), IoError> {
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        if !state.journal.push(record, || self.handle.now_ns()) {
            let error = IoError::new(ErrorKind::Device, "the journal is full");
            state.failed = Some(error.clone());
            tracing::error!(
                shard = self.config.shard.0,
                "the journal is full: the shard has stopped"
            );
            return Err(error);
        }
        Ok(())
    }

    /// Waits until the journal has room for the records of one more piece of work; the room is
    /// kept until what is returned is dropped. Work that makes space goes first: what waits for
    /// space may hold room meanwhile.
    ///
    /// # Errors
    /// When the shard has failed.
    pub(crate) async fn journal_room(&self, work: Work) -> Result<Room<'_>, IoError> {
        loop {
            let freed = self.reservations.until_freed();
            if let Some(room) = self.try_journal_room(work)? {
                return Ok(room);
            }
            self.checkpoints.ask();
            freed.await;
        }
    }

    /// As [`Shard::journal_room`], if there is room already: for who holds some and would wait for
    /// itself.
    ///
    /// # Errors
    /// When the shard has failed.
    pub(crate) fn try_journal_room(&self, work: Work) -> Result<Option<Room<'_>>, IoError> {
        let state = self.state.borrow();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        if !self.has_journal_room(&state, work) {
            return Ok(None);
        }
        Ok(Some(self.reservations.hold()))
    }

    /// Whether the journal has room for the records of one more piece of work: sufficient for a caller that appends them without waiting.
    pub(crate) fn has_journal_room(&self, state: &State, work: Work) -> bool {
        let (limit, few) = match work {
            Work::Host(due) => {
                let (limit, most) = (state.journal.host_limit(), self.most_changed());
                let changed = state.dirty_pages.waiting().len()
                    + self.kept_for_others(most as u64, due) as usize;
                (limit - self.kept_for_others(limit, due), changed < most)
            }
            Work::Mover => (state.journal.mover_limit(), true),
        };
        let users = self.reservations.held();
        few && state.journal.has_room(users, limit) && self.may_change_pages(state, users)
    }

    /// Makes every record so far survive the end of this process: it is in the tail, or in the ring, though
    /// perhaps only in a drive's cache. A host that outlives the daemon counts on that.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    pub(crate) async fn written(&self) -> Result<(), IoError> {
        match self.is_written()? {
            true => Ok(()),
            false => self.in_ring().await,
        }
    }

    /// Whether that is so already, as mostly where the journal has a tail.
    ///
    /// # Errors
    /// Why the shard has failed.
    pub(crate) fn is_written(&self) -> Result<bool, IoError> {
        let state = self.state.borrow();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let is_persisted = state.journal.is_persisted();
        if is_persisted && state.journal.waiting() >= COMMIT_PAGES {
            self.wal.ask();
        }
        Ok(is_persisted)
    }

    /// Puts every record so far into the ring.
    ///
    /// The page that is being filled is written as it is, and again when more is in it: no
    /// barrier has covered it until it is sealed.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    async fn in_ring(&self) -> Result<(), IoError> {
        let target = self.state.borrow().journal.made();
        loop {
            let ended = self.wal.writes().until_ended();
            {
                let state = self.state.borrow();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.journal.is_written(target) {
                    return Ok(());
                }
            }
            if !self.wal.writes().begin() {
                ended.await;
                continue;
            }
            let result = self.write_waiting().await;
            self.wal.writes().end();
            if let Err(error) = result {
                let error = drive_error(error, "the journal cannot be written");
                self.fail(&error);
                return Err(error);
            }
            self.wal.writes().wake();
        }
    }

    async fn write_waiting(&self) -> Result<(), DriveError> {
        let unwritten = self.state.borrow_mut().journal.begin_write();
        self.write_journal(&unwritten.pages).await?;
        self.state.borrow_mut().journal.end_write(&unwritten);
        if self.flush_is_due() {
            self.wal.ask();
        }
        Ok(())
    }

    /// Whether a drive has so much to flush that a barrier now spares hosts from waiting long for a later one.
    pub(crate) fn flush_is_due(&self) -> bool {
        let since_ns = self.wal.since_commit_ns(self.handle.now_ns());
        let state = self.state.borrow();
        let touched = state.journal.touched().iter().chain(&[VdriveId(0)]);
        self.devices.is_flush_due(touched, since_ns)
    }

    /// Makes every record so far durable, with its data.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it, since it is unknown what is durable then.
    pub(crate) async fn barrier(&self) -> Result<(), IoError> {
        let target = self.state.borrow().journal.target();
        loop {
            let ended = self.wal.commits().until_ended();
            {
                let state = self.state.borrow();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.journal.bounds().durable >= target {
                    return Ok(());
                }
            }
            if !self.wal.commits().begin() {
                ended.await;
                continue;
            }
            let result = self.run_barrier().await;
            self.wal.commits().end();
            if let Err(error) = result {
                let error = drive_error(error, "the journal cannot be made durable");
                self.fail(&error);
                return Err(error);
            }
            self.wal.commits().wake();
            self.release_space();
        }
    }

    async fn run_barrier(&self) -> Result<(), DriveError> {
        let (upto, touched) = {
            let mut state = self.state.borrow_mut();
            let (upto, touched) = state.journal.begin_commit();
            state.deferred_frees.seal(upto);
            (upto, touched)
        };
        self.all_in_ring().await.map_err(|_| DriveError::Gone)?;
        let ids = touched.into_iter().chain([VdriveId(0)]);
        let vdrives = self.devices.several(ids).ok_or(DriveError::Gone)?;
        let skipped = |vdrive: &VdriveId| match *vdrive {
            VdriveId(0) => is_on(Mutation::FlushJournal),
            _ => is_on(Mutation::FlushData),
        };
        let flushed = vdrives.iter().filter(|vdrive| !skipped(&vdrive.id));
        for result in join_all(flushed.map(|vdrive| vdrive.flush())).await {
            result?;
        }
        // What relies on a member's absence counts only once no opening can take that member for whole.
        if !is_on(Mutation::BarrierAlone) && !self.shared.members.recorded().await {
            return Err(DriveError::Gone);
        }
        self.state.borrow_mut().journal.is_durable(upto);
        self.wal.mark_soon(self.handle.now_ns());
        Ok(())
    }

    /// Puts every record and every sealed page so far into the ring. What is durable is never written again: sealed pages
    /// go out before the flush, even when their records are in the ring already.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    pub(super) async fn all_in_ring(&self) -> Result<(), IoError> {
        while self.state.borrow_mut().journal.has_sealed() {
            self.in_ring().await?;
        }
        self.in_ring().await
    }

    /// Writes sealed pages where they belong, neighbours in one write.
    async fn write_journal(&self, pages: &[(u64, DmaBuf)]) -> Result<(), DriveError> {
        let JournalBounds { base, ring, .. } = self.state.borrow().journal.bounds();
        let meta = self.vdrive(VdriveId(0)).map_err(|_| DriveError::Gone)?;
        let mut writes = Vec::new();
        let mut rest = pages;
        while let Some(((sequence, first), _)) = rest.split_first() {
            let at = sequence % ring;
            let count = rest.len().min(WRITE_PAGES).min((ring - at) as usize);
            let (run, after) = rest.split_at(count);
            rest = after;
            let buf = if let [_] = run {
                first.clone()
            } else {
                let mut joined = self.handle.dma().get(count * PAGE);
                for (index, (_, page)) in run.iter().enumerate() {
                    joined[index * PAGE..][..PAGE].copy_from_slice(page);
                }
                joined
            };
            let mut in_place = |mut lent: Lent<'_>| lent.copy_in(&buf);
            if !meta.write_in_place(base + at, count, Purpose::Metadata, &mut in_place) {
                writes.push(meta.write(base + at, buf, Purpose::Metadata));
            }
        }
        block::settle();
        if writes.is_empty() {
            return Ok(());
        }
        join_all(writes).await.into_iter().collect()
    }

    /// Completes deferred frees that are no longer needed.
    pub(crate) fn release_space(&self) {
        let mut freed = false;
        let mut state = self.state.borrow_mut();
        let durable = state.journal.bounds().durable;
        let mut slots = 0;
        while let Some(batch) = state.deferred_frees.release(durable) {
            let homes = batch.homes.iter().map(|home| (*home, CHUNK_BLOCKS as u32));
            let released = batch.slots.iter().copied().chain(homes);
            self.devices.check_unseen(released);
            state.alloc.release(&batch);
            freed = true;
            let fast = batch
                .slots
                .iter()
                .filter(|(place, _)| self.class(*place) == Class::Fast);
            slots += fast.map(|(_, count)| u64::from(*count)).sum::<u64>();
        }
        // Every read of a drive comes by here, and ended just now.
        state.pacing.freed(self.handle.seen_ns(), slots);
        drop(state);
        if freed {
            self.reservations.wake();
            self.space_waiters.wake();
        }
    }
}
