//! Writes: copied and checksummed in one pass, sent to free slots, then recorded.

use crate::io::levels::InLine;
use crate::map::page::MapPage;
use crate::shard::state::{Shard, drive_error};
use crate::space::quota_claim::new_blocks;
use crate::space::{Class, Refusal, Run};
use crate::tiering::access_stats::By;
use crate::vdrive::{Purpose, all_ended};
use crate::wal::log::Work;
use block::{DmaBuf, DriveError, ErrorKind, IoBuf, IoError};
use format::{BlockMask, BlockState, crc32c};
use futures_util::future::join_all;
use qos::Due;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK, CHUNK_BLOCKS, Place};

/// Rounds of freeing space before a write fails.
const SPACE_ROUNDS: usize = 64;
/// Most restarts of a write of part of a block because the block changed meanwhile.
pub(super) const MERGE_ROUNDS: usize = 64;

/// A part of an operation that is in one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub chunk: u32,
    /// First byte within the chunk.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
    /// First byte within the operation's buffer.
    pub at: usize,
}

/// Cuts a range of a volume (in bytes) where chunks end.
pub(crate) fn pieces(offset: u64, len: u64) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let (chunk, start) = (
                (offset + done) / CHUNK as u64,
                (offset + done) % CHUNK as u64,
            );
            let take = (CHUNK as u64 - start).min(len - done);
            let piece = Piece {
                chunk: chunk as u32,
                start: start as usize,
                len: take as usize,
                at: done as usize,
            };
            done += take;
            piece
        })
    })
}

impl Piece {
    /// A whole block of a chunk, for an operation of no more than that.
    pub fn of_block(chunk: u32, block: usize) -> Self {
        Self {
            chunk,
            start: block * BLOCK,
            len: BLOCK,
            at: 0,
        }
    }

    /// First block and number of blocks that it touches.
    pub fn blocks(&self) -> (usize, usize) {
        let first = self.start / BLOCK;
        (first, (self.start + self.len).div_ceil(BLOCK) - first)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.start.is_multiple_of(BLOCK) && self.len.is_multiple_of(BLOCK)
    }
}

impl Shard {
    /// Writes `buf` at `offset` (bytes) of `by`'s volume. Visible to reads once it returns; durable
    /// after the next barrier.
    ///
    /// # Errors
    /// `NoSpace` when the pool is full or the volume's quota is reached, or a drive's error.
    pub(crate) async fn write(&self, by: By, offset: u64, buf: &IoBuf) -> Result<(), IoError> {
        for piece in pieces(offset, buf.len() as u64) {
            let _room = self.journal_room(Work::Host(by.due)).await?;
            if piece.is_whole() {
                let send = async |runs: &[Run]| self.send_piece(runs, piece, buf).await;
                self.write_blocks(by, piece, send, None).await?;
            } else {
                self.write_merged(by, piece, buf).await?;
            }
        }
        Ok(())
    }

    /// Writes part of blocks: reads them, merges, and starts again when they changed meanwhile.
    async fn write_merged(&self, by: By, piece: Piece, buf: &IoBuf) -> Result<(), IoError> {
        let (first, count) = piece.blocks();
        let whole = Piece {
            start: first * BLOCK,
            len: count * BLOCK,
            ..piece
        };
        let read = By::read(by.volume).bypassed(by.bypassed).due(by.due);
        for _ in 0..MERGE_ROUNDS {
            let (_, map_page) = self.writable(by.volume, piece.chunk).await?;
            let seen = versions(&map_page, first, count);
            let mut old = IoBuf::zeroed(count * BLOCK);
            self.read_chunk(read, whole_at_zero(whole), None, &mut old)
                .await?;
            let mut data = self.handle.dma().get(count * BLOCK);
            old.read(0, &mut data);
            let skip = piece.start - first * BLOCK;
            buf.read(piece.at, &mut data[skip..skip + piece.len]);
            let crcs = data.chunks_exact(BLOCK).map(crc32c).collect();
            let send = async |runs: &[Run]| {
                let sent = self.write_runs(runs, &data, Purpose::Hosts).await;
                sent.map(|()| crcs)
            };
            let seen = Some((&map_page, &seen[..]));
            if self.write_blocks(by, whole, send, seen).await? {
                return Ok(());
            }
        }
        Err(IoError::new(
            ErrorKind::Device,
            "a block changed too often while part of it was written",
        ))
    }

    /// The layer and page for a write to a chunk, valid until the caller awaits.
    async fn writable(&self, volume: u32, chunk: u32) -> Result<(u32, Rc<MapPage>), IoError> {
        let found = self.live_page(volume, chunk, true).await?;
        found.ok_or_else(|| IoError::new(ErrorKind::Gone, "it was deleted"))
    }

    /// Writes whole blocks, which `send` writes to their slots and returns the checksums of; with `seen`, only if the page and
    /// the blocks are still those. False if not.
    async fn write_blocks(
        &self,
        by: By,
        piece: Piece,
        send: impl AsyncFnOnce(&[Run]) -> Result<Vec<u32>, DriveError>,
        seen: Option<(&Rc<MapPage>, &[Version])>,
    ) -> Result<bool, IoError> {
        let (first, count) = piece.blocks();
        let (layer, map_page) = self.writable(by.volume, piece.chunk).await?;
        self.admit(layer, &map_page, first, count)?;
        let runs = self.take_slots(by.due, count).await?;
        let crcs = match send(&runs).await {
            Ok(crcs) => crcs,
            Err(error) => {
                self.give_back_after(&runs, error);
                return Err(drive_error(error, "a write failed"));
            }
        };
        // A snapshot may have been taken meanwhile: the page may be another one.
        let (layer, map_page) = match self.writable(by.volume, piece.chunk).await {
            Ok(_) if is_on(Mutation::WriteBehind) => (layer, map_page),
            Ok(found) => found,
            Err(error) => {
                self.give_back(&runs);
                return Err(error);
            }
        };
        let changed = seen.is_some_and(|(page, seen)| {
            !Rc::ptr_eq(page, &map_page) || *seen != versions(&map_page, first, count)[..]
        });
        if changed && !is_on(Mutation::MergeRace) {
            self.give_back(&runs);
            return Ok(false);
        }
        self.record_write((by, layer), &map_page, piece, &runs, &crcs)?;
        Ok(true)
    }

    /// Makes `runs` the content of a piece of a layer's chunk.
    ///
    /// # Errors
    /// `NoSpace`, or a failed journal.
    pub(crate) fn record_write(
        &self,
        (by, layer): (By, u32),
        map_page: &Rc<MapPage>,
        piece: Piece,
        runs: &[Run],
        crcs: &[u32],
    ) -> Result<(), IoError> {
        let (first, count) = piece.blocks();
        let are_fast = runs.iter().all(|run| self.class(run.place) == Class::Fast);
        let blocks = first..first + count;
        // Overwritten dirty blocks take no more space, and did not move: most writes are like that.
        let had = self.are_fast_alone(&map_page.page.borrow(), blocks);
        if !(are_fast && had) {
            if let Err(error) = self.claim(layer, map_page, first, count) {
                self.give_back(runs);
                return Err(error);
            }
            self.note_written((layer, piece.chunk), map_page, first, runs);
        }
        self.fetching.some();
        let (mut state, chunk) = (self.state.borrow_mut(), (layer, piece.chunk));
        let mut done = 0;
        for run in runs {
            let (first, crcs) = (first + done, &crcs[done..done + run.count]);
            let blocks = first..first + run.count;
            let had = had || self.are_fast_alone(&map_page.page.borrow(), blocks);
            self.apply_content(&mut state, chunk, map_page, first, (*run, had), crcs)?;
            state.journal.touch(run.place.vdrive());
            done += run.count;
        }
        self.fetching.some();
        map_page.written_ns.set(self.handle.seen_ns());
        map_page.touched.set(true);
        match count {
            1 => state.access.note_use_of(by, chunk, first),
            _ => state
                .access
                .note_use(by, chunk, &BlockMask::of(first, count)),
        }
        Ok(())
    }

    /// Refuses a write that needs space beyond the free space, reserved for other volumes, or beyond
    /// the volume's quota.
    pub(crate) fn admit(
        &self,
        volume: u32,
        map_page: &MapPage,
        first: usize,
        count: usize,
    ) -> Result<(), IoError> {
        let new = new_blocks(map_page, first, count);
        if new == 0 {
            return Ok(());
        }
        // Counted when it is written: until then others may take or free space.
        let state = self.state.borrow();
        let entry = state.volumes.get(&volume);
        let space = &self.shared.space;
        let refusal = match entry.and_then(|entry| entry.allowance.as_ref()) {
            Some(allowance) => allowance.refuses(new, space),
            None => (!space.has(new)).then_some(Refusal::Space),
        };
        refusal.map_or(Ok(()), |refusal| Err(self.refused(refusal)))
    }

    pub(crate) fn no_space(&self) -> IoError {
        self.shared
            .space
            .full
            .store(true, std::sync::atomic::Ordering::Relaxed);
        IoError::new(ErrorKind::NoSpace, "add a vdrive or delete data")
    }

    /// Frees the space of a write that failed. After a timeout the write may still reach the drive, so
    /// the space stays taken until the pool is opened again.
    pub(crate) fn give_back_after(&self, runs: &[Run], error: DriveError) {
        if error != DriveError::Timeout {
            self.give_back(runs);
        }
    }

    pub(crate) fn give_back(&self, runs: &[Run]) {
        let mut state = self.state.borrow_mut();
        runs.iter().for_each(|run| state.alloc.give_back(*run));
        drop(state);
        self.space_waiters.wake();
    }

    /// Sends data to its slots, for some purpose.
    pub(crate) async fn write_runs(
        &self,
        runs: &[Run],
        data: &DmaBuf,
        purpose: Purpose,
    ) -> Result<(), DriveError> {
        let gone = |_| DriveError::Gone;
        if let [run] = runs {
            let vdrive = self.vdrive(run.place.vdrive()).map_err(gone)?;
            return vdrive.write(run.place.block(), data.clone(), purpose).await;
        }
        let mut done = 0;
        let mut writes = Vec::new();
        for run in runs {
            let vdrive = self.vdrive(run.place.vdrive()).map_err(gone)?;
            let part = data.slice(done * BLOCK, run.count * BLOCK);
            done += run.count;
            writes.push(async move { vdrive.write(run.place.block(), part, purpose).await });
        }
        all_ended(join_all(writes).await)
    }

    /// Takes `count` slots on the fast tier; waits for the mover to make space there; takes the
    /// slow tier's when it cannot. Waiters are ordered by `due` if the pool has policies.
    async fn take_slots(&self, due: Due, count: usize) -> Result<Vec<Run>, IoError> {
        assert!(count <= CHUNK_BLOCKS, "a piece lies in one chunk");
        let class = self.tiers.for_writes();
        let wait = {
            let mut state = self.state.borrow_mut();
            let free = state.alloc.free_slots_or(class, state.pacing.reserve);
            let kept = self.kept_for_others(state.pacing.reserve, due);
            let now = self.handle.now_ns();
            let pacing = &mut state.pacing;
            pacing.wait_ns(now, due, count as u64, [free, kept])
        };
        if wait > 0 {
            self.moves.wake_mover();
            let _aside = self.step_aside();
            self.handle.sleep(wait).await;
        }
        let mut runs = Vec::new();
        if self.space_waiters.may_pass(due) && self.slots_of_rank(class, due, count, &mut runs) {
            self.space_waiters.passed();
            return Ok(runs);
        }
        let _waiter = self.space_waiters.enter();
        let _aside = self.step_aside();
        let place = self.has_policies().then(|| self.space_waiters.line_up(due));
        let mut rounds = 0;
        while rounds < SPACE_ROUNDS {
            let made = self.space_waiters.until_made();
            self.moves.wake_mover();
            self.check()?;
            if !self.can_make_space() {
                break;
            }
            made.await;
            // A write that is not next waits for those before, each of which has a limited number of rounds.
            if !place.as_ref().is_none_or(InLine::is_next) {
                continue;
            }
            rounds += 1;
            let due = match &place {
                Some(place) if !place.is_eldest() => due,
                // The longest waiter may use the whole reserve.
                _ => Due::new(1, u64::MAX),
            };
            if self.slots_of_rank(class, due, count, &mut runs) {
                self.leave_line(place);
                return Ok(runs);
            }
        }
        let other = if class == Class::Fast {
            Class::Slow
        } else {
            Class::Fast
        };
        // The reserve of others only delays, it never refuses: without another tier, it is used.
        let classes = match place {
            Some(_) => [other, class],
            None => [class, other],
        };
        drop(place);
        self.space_waiters.wake_line();
        if self.host_slots(classes[0], count, &mut runs)
            || self.host_slots(classes[1], count, &mut runs)
            || self.slots_given_up([class, other], count, &mut runs).await
        {
            return Ok(runs);
        }
        Err(self.no_space())
    }

    /// Slots for a host's write, which leaves some to higher levels.
    fn slots_of_rank(&self, class: Class, due: Due, count: usize, runs: &mut Vec<Run>) -> bool {
        let leaves = {
            let state = self.state.borrow();
            let kept = self.kept_for_others(state.pacing.reserve, due);
            kept == 0 || state.alloc.free_slots(class) >= kept + count as u64
        };
        leaves && self.host_slots(class, count, runs)
    }

    /// Its wait is over; the next one may find more.
    fn leave_line(&self, place: Option<InLine<'_>>) {
        if let Some(place) = place {
            place.goes();
            self.space_waiters.wake_line();
        }
    }

    /// Slots for a host's write: it leaves a group's worth, so that something can always be moved.
    pub(crate) fn host_slots(&self, class: Class, count: usize, runs: &mut Vec<Run>) -> bool {
        let leaves = self.state.borrow().alloc.leaves_a_group(count as u64);
        leaves && self.try_slots(class, count, runs)
    }

    pub(crate) fn try_slots(&self, class: Class, count: usize, runs: &mut Vec<Run>) -> bool {
        let mut state = self.state.borrow_mut();
        if state.alloc.take_slots(class, count, runs) == count {
            return true;
        }
        runs.drain(..).for_each(|run| state.alloc.give_back(run));
        false
    }
}

pub(super) fn whole_at_zero(piece: Piece) -> Piece {
    Piece { at: 0, ..piece }
}

/// A block's entry in a page.
pub(crate) type Version = (Place, u32, BlockState, u32);

pub(super) fn versions(map_page: &MapPage, first: usize, count: usize) -> Vec<Version> {
    let page = map_page.page.borrow();
    let version = |block| {
        (
            page.slot(block),
            page.crc(block),
            page.state(block),
            page.from(block),
        )
    };
    (first..first + count).map(version).collect()
}
