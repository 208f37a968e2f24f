//! Opening: the journal since the checkpoint that counts (`recovery/open_checkpoint.rs`).

use crate::shard::state::{Shard, drive_error};
use crate::wal::journal::JournalBounds;
use block::{DmaBuf, ErrorKind, IoError};
use format::JournalHeader;
use units::VdriveId;
use units::mutation::{Mutation, is_on};

/// Pages read together.
const BATCH: usize = 128;
/// Pages of the journal that are read first: then twice as many each time. It is often short.
const FIRST: u64 = 4;
/// Retries of an unreadable page.
const TRIES: usize = 3;
const UNREADABLE: &str = "the journal cannot be read";

/// A page of the journal, its records as they are there: a full journal has a million.
pub(crate) struct JournalBody {
    pub header: JournalHeader,
    pub records: Box<[u8]>,
}

impl Shard {
    /// Writes the first checkpoint of a new pool.
    ///
    /// # Errors
    /// A drive's error.
    pub async fn format(&self) -> Result<(), IoError> {
        self.checkpoint().await
    }

    /// Replays the journal since the checkpoint; nothing is made valid by it yet. All shards of a pool do
    /// this before any of them ends its recovery. With `accept_old` drives that were restored to an earlier state
    /// give what they have.
    ///
    /// # Errors
    /// A drive's error, or `Medium` if the journal contradicts the map, or has lost flushed records.
    pub async fn replay_journal(&self, accept_old: bool) -> Result<(), IoError> {
        let pages = self.read_journal(accept_old).await?;
        let durable = self.durable_by_tails(pages.len() as u64, accept_old)?;
        let from = self.state.borrow().journal.bounds().from;
        self.check_stand_in(from + pages.len() as u64)?;
        self.replay(pages, durable).await?;
        self.settle_all();
        Ok(())
    }

    /// Durable end of the journal and its data according to tails; the journal has `pages` pages.
    ///
    /// # Errors
    /// `Medium` if they are ahead of the drives, which then are outdated, unless that is accepted.
    fn durable_by_tails(&self, pages: u64, accept_old: bool) -> Result<u64, IoError> {
        let state = self.state.borrow();
        let (epoch, durable) = state.journal.told_by_tails();
        let journal = state.journal.bounds();
        let end = journal.from + pages;
        let older = epoch > journal.epoch || epoch == journal.epoch && durable > end;
        if older {
            drop(state);
            self.older(durable, end, accept_old)?;
            return Ok(0);
        }
        Ok(if epoch < journal.epoch { 0 } else { durable })
    }

    /// The drives have the journal up to page `end` and not up to page `durable`, as it was.
    ///
    /// # Errors
    /// `Medium`, unless that is accepted.
    fn older(&self, durable: u64, end: u64, accept_old: bool) -> Result<(), IoError> {
        if accept_old || is_on(Mutation::TailOlder) {
            return Ok(());
        }
        let journal = &self.state.borrow().journal;
        let text = format!(
            "shard {}: the drives have its journal up to page {end} of opening {}, and the previous daemon \
             had made it durable up to page {durable} of opening {}: they were restored to an earlier \
             state and lack later writes; attach the right drives, or open the pool as it is \
             with --accept-old",
            self.config.shard,
            journal.bounds().epoch,
            journal.told_by_tails().0
        );
        Err(IoError::new(ErrorKind::Medium, text))
    }

    /// Writes a new checkpoint in a new epoch, so that what was found is found again, whatever happens
    /// next.
    ///
    /// # Errors
    /// A drive's error.
    pub async fn end_recovery(&self) -> Result<(), IoError> {
        let from = self.state.borrow_mut().opened_from.take();
        if let Some(from) = from {
            self.spread_checkpoint(&from.checkpoint).await?;
        }
        if !is_on(Mutation::EpochKept) {
            self.state.borrow_mut().journal.begin_epoch();
        }
        if is_on(Mutation::NoRecoveryCheckpoint) {
            return Ok(());
        }
        self.checkpoint().await
    }

    /// Pages of the journal from the checkpoint on, as far as they are whole and in order. A page
    /// is written several times while it fills, and a member may have kept an earlier image of it, as the tail that
    /// the last process left may have a later one: the fullest counts.
    async fn read_journal(&self, accept_old: bool) -> Result<Vec<JournalBody>, IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let (journal, (told_epoch, told)) = {
            let journal = &self.state.borrow().journal;
            (journal.bounds(), journal.told_by_tails())
        };
        let (base, ring, mut next, epoch) =
            (journal.base, journal.ring, journal.next, journal.epoch);
        let durable = if told_epoch == epoch { told } else { 0 };
        let (from, mut batch) = (next, FIRST);
        let mut pages = Vec::new();
        let explain = |error| drive_error(error, UNREADABLE);
        while next - from < ring {
            let at = next % ring;
            let count = batch.min(ring - at).min(ring - (next - from)) as usize;
            batch = (2 * batch).min(BATCH as u64);
            let copies = meta.read_members(base + at, count).await.map_err(explain)?;
            for index in 0..count {
                // What was durable the ring has. Where it has not, the drives were restored to an earlier state to what they were
                // before, and the tail is of a later time.
                let left = self.state.borrow().journal.left_in_tail(next);
                let (known, left) = match next >= durable {
                    true => (None, left),
                    false => (left, None),
                };
                let here = || copies.iter().map(|copy| copy[index].as_deref());
                let mut found =
                    self.fullest(here().flatten().chain(left.as_deref()), epoch, next)?;
                let known = self.fullest(known.as_deref().into_iter(), epoch, next)?;
                if let (Some(known), Some(found)) = (known, &found)
                    && known.records.len() > found.records.len()
                {
                    self.older(next + 1, next, accept_old)?;
                }
                if found.is_none() && here().all(|copy| copy.is_none()) {
                    let again = self.read_lost_page(next, accept_old).await?;
                    found = self.fullest(again.iter().map(|copy| &copy[..]), epoch, next)?;
                }
                let Some(page) = found else {
                    let rest = copies.iter().flat_map(|copy| &copy[index..]);
                    let later = self.check_end(rest, (epoch, next))?;
                    // Their memory is free for the next reads.
                    drop(copies);
                    let seen = (count - index) as u64;
                    self.look_beyond(next, (seen, later), epoch).await?;
                    return Ok(pages);
                };
                pages.push(page);
                next += 1;
            }
        }
        Ok(pages)
    }

    /// Of copies of a page of the journal the one that has most of it, if one is that page.
    fn fullest<'a>(
        &self,
        copies: impl Iterator<Item = &'a [u8]>,
        epoch: u64,
        sequence: u64,
    ) -> Result<Option<JournalBody>, IoError> {
        let mut fullest: Option<(JournalHeader, &[u8])> = None;
        let mut before: Option<&[u8]> = None;
        for bytes in copies {
            // Members mostly have the same.
            if before.replace(bytes).is_some_and(|before| before == bytes) {
                continue;
            }
            let Some(page) = self.open_journal_page(bytes, (epoch, sequence))? else {
                continue;
            };
            if fullest.is_none_or(|(_, known)| page.1.len() > known.len()) {
                fullest = Some(page);
            }
        }
        Ok(fullest.map(|(header, records)| JournalBody {
            header,
            records: records.into(),
        }))
    }

    /// Retries reading a page's place that no member could read. `None` if the left tail has all that
    /// the ring may lack: it would have that page.
    ///
    /// # Errors
    /// `Medium` if it may have contained flushed writes, unless older data is accepted.
    async fn read_lost_page(
        &self,
        sequence: u64,
        accept_old: bool,
    ) -> Result<Vec<DmaBuf>, IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let (JournalBounds { base, ring, .. }, is_known) = {
            let journal = &self.state.borrow().journal;
            (journal.bounds(), journal.is_known(sequence))
        };
        for _ in 0..TRIES {
            if let Ok(copies) = meta.read_members(base + sequence % ring, 1).await {
                return Ok(copies.into_iter().flatten().flatten().collect());
            }
        }
        if is_known || accept_old {
            return Ok(Vec::new());
        }
        let text = format!(
            "shard {}: page {sequence} of its journal cannot be read on any drive that has it, and may hold writes that \
             were flushed: bring back a drive that has it, copy the volumes out as they are with `convect restore`, or \
             open the pool as it is with --accept-old",
            self.config.shard
        );
        Err(IoError::new(ErrorKind::Medium, text))
    }

    /// Examines what lies behind the journal's end, of which `seen` pages were examined already, one of this epoch among
    /// them if `later`.
    ///
    /// However many pages are made while a barrier runs, those after it tell that what it covered was durable: as long as
    /// there are later ones, it is looked further, and at [`BATCH`] pages at least, since others may be lost, too.
    async fn look_beyond(
        &self,
        end: u64,
        (mut seen, mut later): (u64, bool),
        epoch: u64,
    ) -> Result<(), IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let JournalBounds { base, ring, .. } = self.state.borrow().journal.bounds();
        while seen < ring && (later || seen < BATCH as u64) {
            let at = (end + seen) % ring;
            let count = (ring - seen).min(ring - at).min(BATCH as u64);
            let copies = meta.read_members(base + at, count as usize).await;
            let copies = copies.map_err(|error| drive_error(error, UNREADABLE))?;
            later = self.check_end(copies.iter().flatten(), (epoch, end))?;
            seen += count;
        }
        Ok(())
    }

    /// Refuses to take for the journal's end what was lost out of its middle: blocks after it
    /// tell when they hold a page that was made when this one was durable, or one of an epoch
    /// that began with a checkpoint that is not there any longer. Whether one is a page of this epoch that was made later.
    fn check_end<'a>(
        &self,
        blocks: impl Iterator<Item = &'a Option<DmaBuf>>,
        (epoch, end): (u64, u64),
    ) -> Result<bool, IoError> {
        let (pool, shard) = (self.config.pool, self.config.shard);
        let mut later = false;
        for bytes in blocks.flatten() {
            let claimed = JournalHeader::claimed(bytes, pool, shard);
            let is_of = |header: &JournalHeader| {
                header.epoch > epoch || header.epoch == epoch && header.sequence > end
            };
            let Some(header) = claimed.filter(is_of) else {
                continue;
            };
            if JournalHeader::read(bytes, pool, shard).is_none() {
                continue;
            }
            let what = if header.epoch > epoch {
                "its newest checkpoint is lost".to_owned()
            } else if header.durable_below > end {
                format!("page {end} of its journal is lost")
            } else {
                later = true;
                continue;
            };
            let text = format!(
                "shard {shard}: {what} on every drive that has it, and with it writes that were \
                 flushed: bring back a drive that has them, or copy the volumes out as they are with \
                 `convect restore`"
            );
            return Err(IoError::new(ErrorKind::Medium, text));
        }
        Ok(later)
    }

    /// The header and the records, as they are there, of a page of the journal, if it is the one
    /// that is wanted.
    pub(crate) fn open_journal_page<'a>(
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
