//! The journal: records in memory, then in the ring, then durable.

use super::nvram_tail::Tail;
use super::reservations::Room;
use super::tail_head::{TailDrive, TailHead};
use crate::shard::state::{Shard, ShardConfig, State, drive_error};
use crate::space::Class;
use crate::vdrive::Purpose;
use block::{DmaBuf, DmaPool, DriveError, ErrorKind, IoError, LastingMemory, Lent};
use format::{JournalHeader, JournalPage, PAGE, Record};
use futures_util::future::join_all;
use qos::Due;
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, PoolId, ShardId, VdriveId};

/// Pages of one write to the ring.
const WRITE_PAGES: usize = 64;
/// Pages that wait to be written before a barrier is begun.
pub(crate) const COMMIT_PAGES: usize = 128;

/// Pages of a journal that hosts fill at most, however large its ring is: a million records,
/// which recovery has to play within seconds.
const LONGEST: u64 = 8 * 1024;

/// Pages that the records of one piece of work take at most: those of 256 single blocks, made without a pause.
const ROOM_PAGES: u64 = 3;

/// Who asks for room in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// An operation of a host, which is due so.
    Host(Due),
    /// Demotion, eviction, promotion: they make space, or are few.
    Mover,
}

/// What earlier processes left of a shard's journal in memory that outlives them.
#[derive(Default)]
pub(crate) struct LeftTail {
    /// The tail of the last opening, as its label tells.
    pub tail: Option<Tail>,
    /// The newest epoch that a tail of these drives tells of, of whichever opening.
    pub epoch: u64,
    /// Pages below this number were durable in that epoch.
    pub durable: u64,
}

impl LeftTail {
    /// Adds what a tail of these drives says.
    pub fn note(&mut self, head: &TailHead) {
        let known = (self.epoch, self.durable);
        (self.epoch, self.durable) = known.max((head.epoch, head.durable));
    }
}

/// A shard's journal. Pages are numbered since the pool was made and lie in a ring.
pub struct Journal {
    pool: PoolId,
    shard: ShardId,
    pub base: u64,
    pub ring: u64,
    pub epoch: u64,
    /// Number of the page that is being filled.
    pub next: u64,
    /// First page that recovery would need.
    pub from: u64,
    /// Pages below this number are durable, with their data.
    pub durable: u64,
    /// Pages below this number are in the ring.
    in_ring: u64,
    /// The page before this one is the last that was ended with records in it.
    recorded: u64,
    page: JournalPage,
    tail: Option<Tail>,
    /// What an earlier process left, until recovery has ended.
    left: LeftTail,
    sealed: Vec<(u64, DmaBuf)>,
    dma: DmaPool,
    /// Vdrives that hold data of records that are not durable yet.
    touched: Vec<VdriveId>,
    /// Records made since the opening, and marks.
    pub made: u64,
    /// How many of them are in the ring, durable or not.
    written: u64,
    /// How many of them are in the ring or in the tail.
    covered: u64,
    /// When the oldest record that is not durable was made.
    pub since_ns: Option<u64>,
}

impl Journal {
    /// An empty journal for a shard, its pages from `dma`.
    pub fn new(config: &ShardConfig, dma: DmaPool) -> Self {
        Self {
            pool: config.pool,
            shard: config.shard,
            base: config.journal_base,
            ring: config.journal_blocks,
            epoch: 0,
            next: 0,
            from: 0,
            durable: 0,
            in_ring: 0,
            recorded: 0,
            page: JournalPage::new(),
            tail: None,
            left: LeftTail::default(),
            sealed: Vec::new(),
            dma,
            touched: Vec::new(),
            made: 0,
            written: 0,
            covered: 0,
            since_ns: None,
        }
    }

    /// The vdrive holds data of the record that was just appended.
    pub fn touch(&mut self, vdrive: VdriveId) {
        // A pool has few vdrives: a look through them takes less than one into a set.
        if !self.touched.contains(&vdrive) {
            self.touched.push(vdrive);
        }
    }

    /// Whether some vdrive holds data of records that are not durable yet.
    pub fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// No data of the records so far has to be flushed: there is none, in a benchmark.
    pub fn forget_touched(&mut self) {
        self.touched.clear();
    }

    /// Pages of the ring that recovery would read.
    pub fn length(&self) -> u64 {
        self.next - self.from
    }

    /// Whether sealed pages wait to be written; they are then written whatever is in the ring.
    fn has_sealed(&mut self) -> bool {
        if !self.sealed.is_empty() {
            self.written = self.written.min(self.made.saturating_sub(1));
        }
        !self.sealed.is_empty()
    }

    /// Pages at which hosts wait for a checkpoint. One that presses begins at two thirds of it.
    pub fn host_limit(&self) -> u64 {
        (self.ring / 4 * 3).min(LONGEST)
    }

    /// Pages at which work that makes space waits for a checkpoint. The page that is being filled
    /// and one beside it always fit.
    pub fn mover_limit(&self) -> u64 {
        (self.host_limit() / 4 * 5).min(self.ring.saturating_sub(4))
    }

    /// Whether a checkpoint has to make room.
    pub fn is_long(&self) -> bool {
        self.length() > self.host_limit() / 3 * 2
    }

    /// Pages waiting to be written.
    pub fn waiting(&self) -> usize {
        self.sealed.len()
    }

    /// Whether recovery would find more than a checkpoint and marks.
    pub fn has_records(&self) -> bool {
        self.recorded > self.from || !self.page.is_empty()
    }

    /// Ends the page that is being filled, empty as it may be, so that a page is written next that says how far the
    /// journal is durable. Its number, if it is empty. `None` when there is no room for it.
    pub fn begin_mark(&mut self) -> Option<Option<u64>> {
        if self.length() + ROOM_PAGES >= self.mover_limit() {
            return None;
        }
        if !self.page.is_empty() {
            self.seal();
            return Some(None);
        }
        let (header, sequence) = (self.header(), self.next);
        // A page that is nowhere else would end the journal for who finds the ones after it in the tail.
        let in_tail = match &mut self.tail {
            Some(tail) => tail.put(header, &self.page, self.in_ring),
            None => false,
        };
        if self.tail.is_some() && !in_tail {
            return None;
        }
        let bytes = self.image();
        self.sealed.push((sequence, bytes));
        self.next += 1;
        // It counts as one record, which is written with the others.
        self.made += 1;
        if in_tail && self.covered + 1 == self.made {
            self.covered = self.made;
        }
        Some(Some(sequence))
    }

    /// An empty page and all before it are in the ring and flushed.
    pub fn end_mark(&mut self, sequence: u64) {
        if self.durable == sequence {
            self.is_durable(sequence + 1);
        }
    }

    /// Pages below this number are durable from now on, with their data.
    fn is_durable(&mut self, upto: u64) {
        self.durable = self.durable.max(upto);
        if let Some(tail) = &self.tail {
            tail.mark(self.durable);
        }
    }

    /// Everything below this page number has to be durable for all records so far to be.
    pub fn target(&self) -> u64 {
        self.next + u64::from(!self.page.is_empty())
    }

    /// Ends the page that is being filled, if it has records.
    pub fn seal(&mut self) {
        if self.page.is_empty() {
            return;
        }
        let bytes = self.image();
        self.sealed.push((self.next, bytes));
        self.page = JournalPage::new();
        self.next += 1;
        self.recorded = self.next;
    }

    /// The page that is being filled, as it is now.
    fn image(&self) -> DmaBuf {
        let mut bytes = self.dma.get(PAGE);
        self.page.seal(self.header(), &mut bytes);
        bytes
    }

    /// What the page that is being filled says of itself now.
    fn header(&self) -> JournalHeader {
        JournalHeader {
            pool: self.pool,
            shard: self.shard,
            epoch: self.epoch,
            sequence: self.next,
            durable_below: if is_on(Mutation::DurableMark) {
                self.next + 1
            } else {
                self.durable
            },
        }
    }

    /// A page as the tail has it that an earlier process left.
    pub fn left_in_tail(&self, sequence: u64) -> Option<Vec<u8>> {
        let tail = self.left.tail.as_ref()?;
        tail.page((self.pool, self.shard), self.epoch, sequence)
    }

    /// Whether the tail that was left has a page that the ring may lack, if there is such a page.
    pub fn is_known(&self, sequence: u64) -> bool {
        let of_epoch = self.left.tail.is_some() && self.left.epoch == self.epoch;
        of_epoch && sequence >= self.left.durable
    }

    /// What tails that were left tell of the epoch and of pages that were durable in it.
    pub fn told_by_tails(&self) -> (u64, u64) {
        (self.left.epoch, self.left.durable)
    }

    /// Puts the record that was just made into the tail, if there is one with room.
    fn put_in_tail(&mut self) {
        let header = self.header();
        if let Some(tail) = &mut self.tail
            && tail.put(header, &self.page, self.in_ring)
            && self.covered + 1 == self.made
        {
            self.covered = self.made;
        }
    }

    fn push(&mut self, record: &Record) -> bool {
        if self.length() + 2 >= self.ring {
            return false;
        }
        if !self.page.push(record) {
            self.seal();
            assert!(self.page.push(record), "an empty page takes any record");
        }
        self.made += 1;
        self.put_in_tail();
        true
    }
}

impl Shard {
    /// The shard's number, to index with.
    pub(crate) fn index(&self) -> usize {
        self.config.shard.0.into()
    }

    /// What earlier processes left of this shard's journal, before it is replayed.
    pub(crate) fn set_left(&self, left: LeftTail) {
        self.state.borrow_mut().journal.left = left;
    }

    /// The memory of a tail, still unused, says what it is from now on: of this shard after its recovery.
    pub(crate) fn begin_tail(
        &self,
        memory: &dyn LastingMemory,
        opening: u128,
        drives: Vec<TailDrive>,
    ) {
        let journal = &self.state.borrow().journal;
        let head = TailHead {
            pool: self.config.pool,
            shard: self.config.shard,
            opening,
            epoch: journal.epoch + u64::from(is_on(Mutation::TailAhead)),
            durable: journal.durable,
            drives,
        };
        head.write(memory.words());
    }

    /// From now on what is recorded goes to that tail as well, and nothing is needed of what was left.
    pub fn use_tail(&self, memory: Option<Arc<dyn LastingMemory>>) {
        let journal = &mut self.state.borrow_mut().journal;
        journal.left = LeftTail::default();
        journal.tail = memory.and_then(Tail::new);
        journal.in_ring = journal.next;
    }

    /// Adds a record to the journal, in memory.
    ///
    /// # Errors
    /// When the ring is full: the shard fails, since going on would overwrite what recovery needs.
    pub(crate) fn append(&self, state: &mut State, record: &Record) -> Result<(), IoError> {
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        if !state.journal.push(record) {
            let error = IoError::new(ErrorKind::Device, "the journal is full");
            state.failed = Some(error.clone());
            tracing::error!(
                shard = self.config.shard.0,
                "the journal is full: the shard stops"
            );
            return Err(error);
        }
        let now_ns = || self.handle.now_ns();
        state.journal.since_ns.get_or_insert_with(now_ns);
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

    /// Whether the journal has room for the records of one more piece of work: enough to know for who makes them at once.
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
        few && state.journal.length() + ROOM_PAGES * (users + 1) <= limit
            && self.may_change_pages(state, users)
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
        let is_written = state.journal.covered >= state.journal.made;
        if is_written && state.journal.waiting() >= COMMIT_PAGES {
            self.wal.ask();
        }
        Ok(is_written)
    }

    /// Puts every record so far into the ring.
    ///
    /// The page that is being filled is written as it is, and again when more is in it: no
    /// barrier has covered it until it is sealed.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    async fn in_ring(&self) -> Result<(), IoError> {
        let target = self.state.borrow().journal.made;
        loop {
            let ended = self.wal.writes().until_ended();
            {
                let state = self.state.borrow();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.journal.written >= target {
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
        let (pages, made, next) = {
            let mut state = self.state.borrow_mut();
            let journal = &mut state.journal;
            let mut pages = std::mem::take(&mut journal.sealed);
            if !journal.page.is_empty() {
                pages.push((journal.next, journal.image()));
            }
            (pages, journal.made, journal.next)
        };
        self.write_journal(&pages).await?;
        {
            let journal = &mut self.state.borrow_mut().journal;
            journal.written = made;
            journal.covered = journal.covered.max(made);
            journal.in_ring = next;
        }
        if self.flush_is_due() {
            self.wal.ask();
        }
        Ok(())
    }

    /// Whether a drive has so much to flush that a barrier now spares hosts from waiting long for a later one.
    pub(crate) fn flush_is_due(&self) -> bool {
        let since_ns = self.wal.since_commit_ns(self.handle.now_ns());
        let state = self.state.borrow();
        let touched = state.journal.touched.iter().chain(&[VdriveId(0)]);
        self.devices.is_flush_due(touched, since_ns)
    }

    /// Makes every record so far durable, with its data.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it, since nobody knows what is durable then.
    pub(crate) async fn barrier(&self) -> Result<(), IoError> {
        let target = self.state.borrow().journal.target();
        loop {
            let ended = self.wal.commits().until_ended();
            {
                let state = self.state.borrow();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.journal.durable >= target {
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
            state.journal.seal();
            state.journal.since_ns = None;
            let upto = state.journal.next;
            if let Some(tail) = state
                .journal
                .tail
                .as_ref()
                .filter(|_| is_on(Mutation::TailMarkEarly))
            {
                tail.mark(upto);
            }
            state.deferred_frees.seal(upto);
            (upto, std::mem::take(&mut state.journal.touched))
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
        let (base, ring) = {
            let state = self.state.borrow();
            (state.journal.base, state.journal.ring)
        };
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
        join_all(writes).await.into_iter().collect()
    }

    /// Frees what nobody can need any more.
    pub(crate) fn release_space(&self) {
        let mut freed = false;
        let mut state = self.state.borrow_mut();
        let durable = state.journal.durable;
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
        state.pacing.freed(self.handle.now_ns(), slots);
        drop(state);
        if freed {
            self.reservations.wake();
            self.space_waiters.wake();
        }
    }
}
