//! Emptying a vdrive that is to leave the pool.

use super::progress::Progress;
use crate::control::explain::Cause;
use crate::map::page::{ChunkLock, MapPage};
use crate::shard::state::{Shard, drive_error};
use crate::space::{Class, Run};
use crate::tiering::unreadable::{UnreadableBlock, UnreadableBlocks, is_of_blocks};
use crate::vdrive::Purpose;
use crate::wal::log::Work;
use block::{DmaBuf, DriveError, ErrorKind, IoError};
use format::{BlockState, Record, crc32c};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK, CHUNK_BLOCKS, Place, VdriveId};

/// Passes over the volumes before evacuation fails: each retries what the last one could not move.
const PASSES: usize = 8;
/// Retries of a chunk that is in use by other work.
const TRIES: usize = 2000;

/// The logged reason of these moves.
const CLEARED: [Cause; 2] = [Cause::ClearedFast, Cause::ClearedSlow];

/// Result of evacuating a vdrive.
#[derive(Clone, Debug)]
pub enum Evacuated {
    /// Nothing is left on it.
    Empty,
    /// It was cancelled.
    Cancelled,
    /// Blocks of it cannot be read; the rest was moved.
    UnreadableBlocks(UnreadableBlocks),
}

/// Blocks that a pass over the volumes could not move.
#[derive(Default)]
struct Pass {
    failure: Option<IoError>,
    unread: UnreadableBlocks,
}

impl Shard {
    /// Moves everything off a vdrive on which no new space is allocated.
    ///
    /// # Errors
    /// `NoSpace` when the rest of the pool cannot take it, or a drive's error.
    pub async fn evacuate(
        &self,
        vdrive: VdriveId,
        progress: &Progress,
    ) -> Result<Evacuated, IoError> {
        let mut left = u64::MAX;
        for _ in 0..PASSES {
            let volumes: Vec<u32> = self.state.borrow().volumes.keys().copied().collect();
            let mut pass = Pass::default();
            for volume in volumes {
                if !self
                    .evacuate_volume(volume, vdrive, progress, &mut pass)
                    .await?
                {
                    return Ok(Evacuated::Cancelled);
                }
            }
            self.barrier().await?;
            // A checkpoint releases groups that have been empty since before the previous one.
            for _ in 0..3 {
                self.checkpoint().await?;
            }
            let now = self.used_on(vdrive);
            if now == 0 || is_on(Mutation::EvacuatedEarly) {
                return Ok(Evacuated::Empty);
            }
            if now >= left {
                if let Some(error) = pass.failure {
                    return Err(error);
                }
                if pass.unread.count > 0 {
                    return Ok(Evacuated::UnreadableBlocks(pass.unread));
                }
            }
            left = now;
        }
        Err(self.no_space())
    }

    pub(crate) fn used_on(&self, vdrive: VdriveId) -> u64 {
        let state = self.state.borrow();
        state.alloc.used_slots(vdrive) + state.alloc.used_homes(vdrive) * CHUNK_BLOCKS as u64
    }

    /// False when it was cancelled.
    async fn evacuate_volume(
        &self,
        volume: u32,
        vdrive: VdriveId,
        progress: &Progress,
        pass: &mut Pass,
    ) -> Result<bool, IoError> {
        let mut from = Some(0);
        while let Some(start) = from {
            let keys = self.next_chunks(volume, start).await?;
            for chunk in &keys {
                progress
                    .rest(&self.handle, || !self.lifecycle.is_closing())
                    .await;
                if progress.is_cancelled() || self.lifecycle.is_closing() {
                    return Ok(false);
                }
                let moved = self.evacuate_chunk(volume, *chunk, vdrive, &mut pass.unread);
                match moved.await {
                    Ok(bytes) => drop(progress.done.fetch_add(bytes, Ordering::Relaxed)),
                    Err(error) => pass.failure = Some(error),
                }
            }
            self.trim_pages();
            from = keys.last().and_then(|last| last.checked_add(1));
        }
        Ok(true)
    }

    /// Returns the bytes that moved.
    async fn evacuate_chunk(
        &self,
        volume: u32,
        chunk: u32,
        vdrive: VdriveId,
        unread: &mut UnreadableBlocks,
    ) -> Result<u64, IoError> {
        let Some(map_page) = self.map_page(volume, chunk, false).await? else {
            return Ok(0);
        };
        let mut busy = ChunkLock::try_new(&map_page);
        for _ in 0..TRIES {
            if busy.is_some() {
                break;
            }
            self.handle.sleep(1_000_000).await;
            busy = ChunkLock::try_new(&map_page);
        }
        if busy.is_none() {
            return Ok(0);
        }
        let mut moved = 0;
        if map_page.page.borrow().home().is_some()
            && map_page.page.borrow().home().vdrive() == vdrive
        {
            moved += self.move_home(volume, chunk, &map_page, unread).await?;
        }
        let on_it: Vec<usize> = {
            let page = map_page.page.borrow();
            let here =
                |block: &usize| page.slot(*block).is_some() && page.slot(*block).vdrive() == vdrive;
            (0..CHUNK_BLOCKS).filter(here).collect()
        };
        for block in on_it {
            moved += self
                .move_slot((volume, chunk), &map_page, block, unread)
                .await?;
        }
        Ok(moved)
    }

    /// Moves a home to another vdrive, or its valid blocks into slots. The caller holds no room in the journal.
    pub(crate) async fn move_home(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        unread: &mut UnreadableBlocks,
    ) -> Result<u64, IoError> {
        let room = self.journal_room(Work::Mover).await?;
        let old = map_page.page.borrow().home();
        let data = match self.read_home(map_page, old).await {
            Ok(data) => data,
            // Readable blocks of it are moved one by one.
            Err(error) if is_of_blocks(error) => {
                drop(room);
                return self.dissolve_home(volume, chunk, map_page, unread).await;
            }
            Err(error) => return Err(drive_error(error, "a chunk cannot be moved")),
        };
        let new = self.state.borrow_mut().alloc.take_home();
        let Some(new) = new else {
            drop(room);
            return self.dissolve_home(volume, chunk, map_page, unread).await;
        };
        if let Err(error) = self.write_moved(new, data).await {
            // A write that may still reach the drive keeps its space until the pool is opened again.
            if error != DriveError::Timeout {
                self.state.borrow_mut().alloc.give_home(new);
            }
            return Err(drive_error(error, "a chunk cannot be moved"));
        }
        let mut state = self.state.borrow_mut();
        self.append(
            &mut state,
            &Record::MoveHome {
                volume,
                chunk,
                new,
                old,
            },
        )?;
        state.alloc.recorded(new);
        self.check_home(map_page, new, map_page.page.borrow().home_mask());
        state.alloc.touch_home(old);
        self.devices.check_unwritten(old, CHUNK_BLOCKS);
        state.deferred_frees.home(old);
        map_page.page.borrow_mut().set_home(new);
        self.mark_dirty(&mut state, volume, chunk, map_page);
        Ok(CHUNK as u64)
    }

    async fn read_home(&self, map_page: &MapPage, home: Place) -> Result<DmaBuf, DriveError> {
        let expected: Vec<Option<u32>> = {
            let page = map_page.page.borrow();
            (0..CHUNK_BLOCKS)
                .map(|block| page.home_valid(block).then(|| page.crc(block)))
                .collect()
        };
        // The home copy of a block that is written meanwhile is stale in any case.
        let check = |index: usize, bytes: &[u8]| {
            expected[index]
                .is_none_or(|crc| crc32c(bytes) == crc || !map_page.page.borrow().home_valid(index))
        };
        self.read_place(home, CHUNK_BLOCKS, &check).await
    }

    async fn write_moved(&self, new: Place, data: DmaBuf) -> Result<(), DriveError> {
        let target = self.vdrive(new.vdrive()).map_err(|_| DriveError::Gone)?;
        target.write(new.block(), data, Purpose::Upkeep).await?;
        match is_on(Mutation::MovedUnflushed) {
            true => Ok(()),
            false => target.flush().await,
        }
    }

    /// Moves a home's valid blocks into slots of any tier, in one step. The caller holds no room in the journal.
    ///
    /// # Errors
    /// `NoSpace` if there are not enough slots, or a drive's error: then nothing has moved.
    pub(super) async fn dissolve_whole(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
    ) -> Result<u64, IoError> {
        let _room = self.journal_room(Work::Mover).await?;
        let home = map_page.page.borrow().home();
        let valid: Vec<usize> = map_page.page.borrow().home_mask().blocks().collect();
        let cannot = |error| drive_error(error, "a home location cannot be dissolved");
        let mut moved = 0;
        if !valid.is_empty() {
            let data = self.read_home(map_page, home).await.map_err(cannot)?;
            let mut packed = self.handle.dma().get(valid.len() * BLOCK);
            for (index, block) in valid.iter().enumerate() {
                packed[index * BLOCK..][..BLOCK].copy_from_slice(&data[block * BLOCK..][..BLOCK]);
            }
            let mut runs: Vec<Run> = Vec::new();
            if !self.try_slots(Class::Slow, valid.len(), &mut runs)
                && !self.try_slots(Class::Fast, valid.len(), &mut runs)
            {
                // No host's write has failed because of it: the pool does not count as full.
                let text = "there are fewer free slots than the home location has blocks";
                return Err(IoError::new(ErrorKind::NoSpace, text));
            }
            if let Err(error) = self.write_runs(&runs, &packed, Purpose::Upkeep).await {
                self.give_back_after(&runs, error);
                return Err(cannot(error));
            }
            moved = self.settle_dissolved(volume, chunk, map_page, (home, &valid), &runs)?;
        }
        self.drop_stale_home(volume, chunk, map_page)?;
        Ok(moved)
    }

    /// Records the move of blocks from a home into slots, unless they were written meanwhile.
    fn settle_dissolved(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        (home, valid): (Place, &[usize]),
        runs: &[Run],
    ) -> Result<u64, IoError> {
        let mut moved = 0;
        let mut blocks = valid.iter().copied();
        for run in runs {
            self.state.borrow_mut().alloc.recorded(run.place);
            for (index, block) in (0..run.count as u64).zip(blocks.by_ref()) {
                let slot = Run {
                    place: run.place.plus(index),
                    count: 1,
                };
                let (is_there, crc) = {
                    let page = map_page.page.borrow();
                    let is_there = page.home() == home && page.home_valid(block);
                    (is_there, page.crc(block))
                };
                if is_there {
                    self.note_block(CLEARED, (volume, chunk), block, slot.place);
                    self.apply_write(volume, chunk, map_page, block, slot, &[crc])?;
                    moved += BLOCK as u64;
                } else {
                    self.give_back(&[slot]);
                }
            }
        }
        Ok(moved)
    }

    /// With no other home to be had, the blocks go into slots of any tier. Each takes room in the journal for
    /// itself, since a barrier may end a page after every one: the caller holds none.
    pub(crate) async fn dissolve_home(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        unread: &mut UnreadableBlocks,
    ) -> Result<u64, IoError> {
        let valid: Vec<usize> = map_page.page.borrow().home_mask().blocks().collect();
        let mut moved = 0;
        for block in valid {
            let state = map_page.page.borrow().state(block);
            if state == BlockState::Clean || state == BlockState::Home {
                moved += self
                    .move_slot((volume, chunk), map_page, block, unread)
                    .await?;
            }
        }
        let _room = self.journal_room(Work::Mover).await?;
        self.drop_stale_home(volume, chunk, map_page)?;
        Ok(moved)
    }

    fn drop_stale_home(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
    ) -> Result<(), IoError> {
        let (home, empty) = {
            let page = map_page.page.borrow();
            (page.home(), page.home_mask().is_empty())
        };
        match empty && home.is_some() {
            true => self.drop_home(&mut self.state.borrow_mut(), volume, chunk, map_page, home),
            false => Ok(()),
        }
    }

    /// Moves one block into another slot; its home, if it was valid, is stale afterwards. One that
    /// cannot be read stays, and is recorded.
    async fn move_slot(
        &self,
        (volume, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        block: usize,
        unread: &mut UnreadableBlocks,
    ) -> Result<u64, IoError> {
        let _room = self.journal_room(Work::Mover).await?;
        let (from, crc, before) = {
            let page = map_page.page.borrow();
            let slot = page.slot(block);
            let from = if slot.is_some() {
                slot
            } else {
                page.home().plus(block as u64)
            };
            (
                from,
                page.crc(block),
                (slot, page.crc(block), page.state(block)),
            )
        };
        let check = |_: usize, bytes: &[u8]| crc32c(bytes) == crc;
        let data = match self.read_place(from, 1, &check).await {
            Ok(data) => data,
            Err(error) if is_of_blocks(error) => {
                let place = from;
                let unreadable = UnreadableBlock {
                    block,
                    place,
                    error,
                };
                self.note_unread(unread, (volume, chunk), &unreadable);
                return Ok(0);
            }
            Err(error) => return Err(drive_error(error, "a block cannot be moved")),
        };
        let other = if self.class(from) == Class::Fast {
            Class::Slow
        } else {
            Class::Fast
        };
        let mut runs: Vec<Run> = Vec::new();
        if !self.try_slots(self.class(from), 1, &mut runs) && !self.try_slots(other, 1, &mut runs) {
            return Err(self.no_space());
        }
        if let Err(error) = self.write_runs(&runs, &data, Purpose::Upkeep).await {
            self.give_back_after(&runs, error);
            return Err(drive_error(error, "a block cannot be moved"));
        }
        let now = {
            let page = map_page.page.borrow();
            (page.slot(block), page.crc(block), page.state(block))
        };
        if now != before && !is_on(Mutation::EvacuationRace) {
            self.give_back(&runs);
            return Ok(0);
        }
        self.note_block(CLEARED, (volume, chunk), block, runs[0].place);
        self.apply_write(volume, chunk, map_page, block, runs[0], &[crc])?;
        Ok(BLOCK as u64)
    }
}

#[cfg(test)]
mod tests;
