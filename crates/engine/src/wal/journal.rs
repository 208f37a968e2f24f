//! A shard's journal in memory: the page that is being filled, pages that wait to be written, and how far all of it is.
//!
//! Pages are numbered since the pool was made, and are in a ring of the metadata region at their number modulo its
//! length. Four numbers only grow: pages below `from` are in the newest checkpoint, below `durable` flushed with the data of
//! their records, below `persisted` written, and `next` is being filled; `from <= next`, and at most a ring is between
//! them. A page in the ring is written again while it fills; one that is **sealed** is full, or a commit ended it, and
//! is never changed again once it is durable.
//!
//! Records are counted, too, since one may be persisted before its page is: in the **tail**, memory that outlives the
//! process. What earlier processes left of theirs (`LeftTail`) is asked by recovery and forgotten when a new one is used.
//!
//! Does no I/O and waits for nothing: `wal/log.rs` writes and flushes, and alone may append. Recovery sets where the
//! journal begins and ends ([`Journal::begin_at`], [`Journal::replayed`]); everybody else reads [`Journal::bounds`].

use super::nvram_tail::Tail;
use super::tail_head::{TailDrive, TailHead};
use block::{DmaBuf, DmaPool, LastingMemory};
use format::{Checkpoint, JournalHeader, JournalPage, PAGE, Record};
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{PoolId, ShardId, VdriveId};

/// Pages of a journal that hosts fill at most, however large its ring is: a million records,
/// which recovery has to replay within seconds.
const LONGEST: u64 = 8 * 1024;

/// Pages that the records of one piece of work take at most: those of 256 single blocks, made without a pause.
const ROOM_PAGES: u64 = 3;

/// The tail of a shard's journal that earlier processes left in memory that outlives them.
#[derive(Default)]
pub(crate) struct LeftTail {
    /// The tail of the last opening, as its label tells.
    pub tail: Option<Tail>,
    /// The newest epoch in a tail of these drives, of any opening.
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

/// Where a journal lies, and how far it is.
#[derive(Clone, Copy, Debug)]
pub struct JournalBounds {
    /// First block of its ring in the metadata region.
    pub base: u64,
    /// Blocks of the ring, a page each.
    pub ring: u64,
    /// Grows with each opening: pages of another epoch are stale.
    pub epoch: u64,
    /// First page that recovery would need.
    pub from: u64,
    /// Pages below this number are durable, with their data.
    pub durable: u64,
    /// Number of the page that is being filled.
    pub next: u64,
}

/// A shard's journal. Pages are numbered since the pool was made and are in a ring.
pub struct Journal {
    pool: PoolId,
    shard: ShardId,
    base: u64,
    ring: u64,
    epoch: u64,
    /// Number of the page that is being filled.
    next: u64,
    /// First page that recovery would need.
    from: u64,
    /// Pages below this number are durable, with their data.
    durable: u64,
    /// Pages below this number are in the ring.
    persisted: u64,
    /// The page before this one is the last that was ended with records in it.
    recorded: u64,
    page: JournalPage,
    tail: Option<Tail>,
    /// The tail of an earlier process, until recovery has ended.
    left: LeftTail,
    sealed: Vec<(u64, DmaBuf)>,
    dma: DmaPool,
    /// Vdrives that hold data of records that are not durable yet.
    touched: Vec<VdriveId>,
    /// Records made since the opening, and marks.
    made: u64,
    /// How many of them are in the ring, durable or not.
    written: u64,
    /// How many of them are in the ring or in the tail.
    covered: u64,
    /// When the oldest record that is not durable was made.
    since_ns: Option<u64>,
}

impl Journal {
    /// An empty journal for a shard of a pool, with a number of blocks of the metadata region from `base` on; its pages are
    /// from `dma`.
    pub fn new((pool, shard): (PoolId, ShardId), (base, ring): (u64, u64), dma: DmaPool) -> Self {
        Self {
            pool,
            shard,
            base,
            ring,
            epoch: 0,
            next: 0,
            from: 0,
            durable: 0,
            persisted: 0,
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

    /// Where it lies, and how far it is.
    #[inline]
    pub fn bounds(&self) -> JournalBounds {
        JournalBounds {
            base: self.base,
            ring: self.ring,
            epoch: self.epoch,
            from: self.from,
            durable: self.durable,
            next: self.next,
        }
    }

    /// It begins where a checkpoint says, before it is replayed.
    pub fn begin_at(&mut self, checkpoint: &Checkpoint) {
        self.epoch = checkpoint.epoch;
        self.from = checkpoint.journal_from;
        self.next = checkpoint.journal_from;
        self.durable = checkpoint.journal_from;
    }

    /// It was replayed up to this page. What was found may be in a drive's cache alone, or on one member until now: the
    /// barrier of the checkpoint that makes it count has something to do.
    pub fn replayed(&mut self, next: u64) {
        self.next = next;
        self.durable = next - u64::from(self.has_touched());
    }

    /// Pages that are made from now on are of a new epoch.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
    }

    /// Pages below this number are in a checkpoint that is durable.
    pub fn truncate(&mut self, from: u64) {
        self.from = from;
    }

    /// Records made since the opening, and marks.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// When the oldest record that is not durable was made.
    pub fn since_ns(&self) -> Option<u64> {
        self.since_ns
    }

    /// The vdrive holds data of the record that was just appended.
    pub fn touch(&mut self, vdrive: VdriveId) {
        // A pool has few vdrives: a look through them takes less than one into a set.
        if !self.touched.contains(&vdrive) {
            self.touched.push(vdrive);
        }
    }

    /// Whether some vdrive holds data of records that are not durable yet.
    fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Vdrives that hold data of records that are not durable yet.
    pub(super) fn touched(&self) -> &[VdriveId] {
        &self.touched
    }

    /// No data of the records so far has to be flushed, as in a benchmark without data.
    pub fn forget_touched(&mut self) {
        self.touched.clear();
    }

    /// Pages of the ring that recovery would read.
    pub fn length(&self) -> u64 {
        self.next - self.from
    }

    /// Whether sealed pages wait to be written; they are then written whatever is in the ring.
    pub(super) fn has_sealed(&mut self) -> bool {
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
    pub(super) fn begin_mark(&mut self) -> Option<Option<u64>> {
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
            Some(tail) => tail.put(header, &self.page, self.persisted),
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
    pub(super) fn end_mark(&mut self, sequence: u64) {
        if self.durable == sequence {
            self.is_durable(sequence + 1);
        }
    }

    /// Pages below this number are durable from now on, with their data.
    pub(super) fn is_durable(&mut self, upto: u64) {
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
        self.page.clear();
        self.next += 1;
        self.recorded = self.next;
    }

    /// The page that is being filled, as it is now.
    fn image(&self) -> DmaBuf {
        let mut bytes = self.dma.get(PAGE);
        self.page.seal(self.header(), &mut bytes);
        bytes
    }

    /// The present header of the page that is being filled.
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

    /// The epoch and its durable pages, according to left tails.
    pub fn told_by_tails(&self) -> (u64, u64) {
        (self.left.epoch, self.left.durable)
    }

    /// Puts the record that was just made into the tail, if there is one with room.
    fn put_in_tail(&mut self) {
        let header = self.header();
        if let Some(tail) = &mut self.tail
            && tail.put(header, &self.page, self.persisted)
            && self.covered + 1 == self.made
        {
            self.covered = self.made;
        }
    }

    /// Adds a record, which is made now. False when the ring is full.
    pub(super) fn push(&mut self, record: &Record, now_ns: impl FnOnce() -> u64) -> bool {
        if self.length() + 2 >= self.ring {
            return false;
        }
        if !self.page.push(record) {
            self.seal();
            assert!(self.page.push(record), "an empty page takes any record");
        }
        self.made += 1;
        self.put_in_tail();
        self.since_ns.get_or_insert_with(now_ns);
        true
    }

    /// Whether `count` pieces of work more, and those that hold room already, fit within `limit` pages.
    pub(super) fn has_room(&self, held: u64, limit: u64) -> bool {
        self.length() + ROOM_PAGES * (held + 1) <= limit
    }

    /// Whether every record so far outlives this process.
    pub(super) fn is_persisted(&self) -> bool {
        self.covered >= self.made
    }

    /// Whether the first `made` records are in the ring.
    pub(super) fn is_written(&self, made: u64) -> bool {
        self.written >= made
    }

    /// The pages that are to be written for every record so far to be in the ring.
    pub(super) fn begin_write(&mut self) -> Unwritten {
        let mut pages = std::mem::take(&mut self.sealed);
        if !self.page.is_empty() {
            pages.push((self.next, self.image()));
        }
        Unwritten {
            pages,
            made: self.made,
            next: self.next,
        }
    }

    /// They are in the ring.
    pub(super) fn end_write(&mut self, of: &Unwritten) {
        self.written = of.made;
        self.covered = self.covered.max(of.made);
        self.persisted = of.next;
    }

    /// Ends the page that is being filled for a commit. Pages below the number that is returned will be durable by it, once
    /// the vdrives are flushed that hold data of their records.
    pub(super) fn begin_commit(&mut self) -> (u64, Vec<VdriveId>) {
        self.seal();
        self.since_ns = None;
        if let Some(tail) = self
            .tail
            .as_ref()
            .filter(|_| is_on(Mutation::TailMarkEarly))
        {
            tail.mark(self.next);
        }
        (self.next, std::mem::take(&mut self.touched))
    }

    /// Its left tail.
    pub(super) fn set_left(&mut self, left: LeftTail) {
        self.left = left;
    }

    /// The initial header of a tail of this journal.
    pub(super) fn tail_head(&self, opening: u128, drives: Vec<TailDrive>) -> TailHead {
        TailHead {
            pool: self.pool,
            shard: self.shard,
            opening,
            epoch: self.epoch + u64::from(is_on(Mutation::TailAhead)),
            durable: self.durable,
            drives,
        }
    }

    /// Records go to this tail as well from now on.
    pub(super) fn use_tail(&mut self, memory: Option<Arc<dyn LastingMemory>>) {
        self.left = LeftTail::default();
        self.tail = memory.and_then(Tail::new);
        self.persisted = self.next;
    }

    /// Limits the ring to a number of blocks.
    #[cfg(test)]
    pub fn shorten(&mut self, ring: u64) {
        self.ring = ring;
    }

    /// Sets its length in pages.
    #[cfg(test)]
    pub fn lengthen(&mut self, pages: u64) {
        self.next = self.from + pages;
    }
}

/// Pages that are being written: their numbers and content, and how far the journal was then.
pub(super) struct Unwritten {
    pub pages: Vec<(u64, DmaBuf)>,
    made: u64,
    next: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let dma = DmaPool::new();
        Journal::new((PoolId(1), ShardId(0)), (0, 64), dma)
    }

    fn record() -> Record {
        Record::Trim {
            volume: 1,
            chunk: 0,
            first: 0,
            count: 1,
            old: format::Few::default(),
        }
    }

    #[test]
    fn a_commit_ends_a_page_and_makes_it_durable_with_its_data() {
        let mut journal = journal();
        assert!(journal.push(&record(), || 5));
        assert!(journal.push(&record(), || 6));
        journal.touch(VdriveId(2));
        assert_eq!((journal.since_ns(), journal.target()), (Some(5), 1));
        let (upto, touched) = journal.begin_commit();
        assert_eq!((upto, touched), (1, vec![VdriveId(2)]));
        assert_eq!((journal.waiting(), journal.since_ns()), (1, None));
        let unwritten = journal.begin_write();
        assert_eq!(unwritten.pages.len(), 1);
        assert!(!journal.is_written(2));
        journal.end_write(&unwritten);
        assert!(journal.is_written(2) && journal.is_persisted());
        journal.is_durable(upto);
        assert_eq!(journal.bounds().durable, 1);
        journal.truncate(1);
        assert!(journal.length() == 0 && !journal.has_records());
    }

    #[test]
    fn a_page_is_written_as_it_is_and_again_when_more_is_in_it() {
        let mut journal = journal();
        journal.push(&record(), || 0);
        let first = journal.begin_write();
        journal.push(&record(), || 0);
        journal.end_write(&first);
        assert!(journal.is_written(1) && !journal.is_written(2));
        let second = journal.begin_write();
        assert_eq!([first.pages[0].0, second.pages[0].0], [0, 0]);
    }

    #[test]
    fn a_full_ring_takes_no_record() {
        let mut journal = journal();
        journal.lengthen(62);
        assert!(!journal.push(&record(), || 0));
        journal.truncate(30);
        assert!(journal.push(&record(), || 0));
        assert!(journal.has_room(0, 35) && !journal.has_room(1, 35));
    }

    #[test]
    fn what_was_replayed_with_data_is_not_durable_yet() {
        let mut journal = journal();
        journal.replayed(4);
        assert_eq!(journal.bounds().durable, 4);
        journal.touch(VdriveId(1));
        journal.replayed(4);
        assert_eq!(journal.bounds().durable, 3);
    }
}
