//! Playing the journal again.
//!
//! Records below the last durable mark are applied as they say. Those after it may have reached
//! the drive without their data: each is applied only if its data is there, and frees what the
//! map says then, not what the record says. A write whose slot cannot be read counts as written, so that its block cannot
//! be read either, rather than return older data (`recovery/unproven.rs`). A write whose slot holds something else may have been
//! durable nevertheless, when its block was demoted and the slot was given away: its checksum is kept
//! until a record says where else the block is.

use super::open::JournalBody;
use super::reconcile::Disputed;
use super::unproven::Unreadable;
use crate::map::page::MapPage;
use crate::map::radix::Lookup;
use crate::shard::state::{Shard, State};
use crate::space::Allocator;
use crate::vdrive::Presence;
use block::{ErrorKind, IoError};
use format::{BlockMask, BlockState, Bounds, ChunkPage, Record, crc32c};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, Place, VdriveId};

/// Checksums of writes whose slots do not hold them, by volume, chunk and block.
type Elsewhere = BTreeMap<(u32, u32, usize), u32>;

/// Records that were not fully applied.
#[derive(Default)]
struct LeftOut {
    elsewhere: Elsewhere,
    disputed: Disputed,
    unreadable: Unreadable,
}

/// Pages of the journal whose records are in memory, and their chunks loaded, together: a full journal has a million
/// records.
const BATCH: usize = 512;
/// Blocks verified with one read.
const RUN: usize = 16;

impl Shard {
    /// Applies the records of these pages; those below `told` were durable, whatever the pages say.
    pub(super) async fn replay(&self, pages: Vec<JournalBody>, told: u64) -> Result<(), IoError> {
        let Some(last) = pages.last() else {
            return Ok(());
        };
        let (next, durable) = (
            last.header.sequence + 1,
            pages.iter().map(|page| page.header.durable_below).max(),
        );
        let durable = durable.unwrap_or(0).max(told);
        let mut left_out = LeftOut::default();
        let open = |page: &JournalBody| self.open_records(&page.records);
        for pages in pages.chunks(BATCH) {
            let opened: Vec<Vec<Record>> = pages.iter().map(open).collect::<Result<_, _>>()?;
            let mut chunks: Vec<_> = opened.iter().flatten().map(Record::subject).collect();
            chunks.sort_unstable();
            chunks.dedup();
            self.load_chunks(&chunks).await?;
            for (page, records) in pages.iter().zip(&opened) {
                let sure = page.header.sequence < durable;
                self.replay_page(records, sure, &mut left_out).await?;
            }
            self.trim_pages();
        }
        if !left_out.elsewhere.is_empty() {
            let blocks = left_out.elsewhere.len();
            tracing::info!(blocks, "unflushed writes of blocks were lost");
        }
        left_out.unreadable.tell(self);
        self.keep(&left_out.disputed).await?;
        let mut state = self.state.borrow_mut();
        // Once a chunk, not once a record.
        for index in 0..state.dirty_pages.waiting().len() {
            let (volume, chunk, map_page) = state.dirty_pages.waiting()[index].clone();
            self.note_chunk(&mut state, volume, chunk, &map_page);
        }
        state.journal.replayed(next);
        Ok(())
    }

    /// The records of a page, each of which can be one of this pool's.
    ///
    /// # Errors
    /// `Medium`.
    fn open_records(&self, body: &[u8]) -> Result<Vec<Record>, IoError> {
        let wrong = |what: String| IoError::new(ErrorKind::Medium, what);
        let records = format::records_of(body).map_err(|error| wrong(error.to_string()))?;
        let state = self.state.borrow();
        for record in &records {
            let bounded = state.alloc.check_record(record);
            bounded.map_err(|found| {
                let shard = self.config.shard;
                wrong(format!(
                    "shard {shard}: its journal refers to {found}: copy the volumes out with `convect restore`"
                ))
            })?;
        }
        Ok(records)
    }

    async fn replay_page(
        &self,
        records: &[Record],
        sure: bool,
        left_out: &mut LeftOut,
    ) -> Result<(), IoError> {
        let LeftOut {
            elsewhere,
            disputed,
            unreadable,
        } = left_out;
        let verified = if sure || is_on(Mutation::Unverified) {
            vec![BlockMask::ALL; records.len()]
        } else {
            self.verify(records, unreadable).await?
        };
        for (record, present) in records.iter().zip(verified) {
            if let Record::Merge {
                volume,
                chunk,
                lower,
            } = record
            {
                if self.replay_merge(*lower, *volume, *chunk).await? {
                    move_elsewhere(elsewhere, *chunk, *volume, *lower);
                    disputed.moved(*chunk, *volume, *lower);
                }
                continue;
            }
            // Made here and not before: it begins with what the pages beneath say by now.
            let (volume, chunk) = record.subject();
            self.map_page(volume, chunk, true).await?;
            if !sure {
                note_elsewhere(elsewhere, record, present);
            }
            let whole = match record {
                Record::Home { home, mask, .. } if !sure && present.is_empty() => {
                    let at_home = self
                        .at_home(record, (*home, *mask), elsewhere, unreadable)
                        .await?;
                    self.replay_at_home(record, *home, &at_home, elsewhere)?;
                    at_home.len() == mask.count()
                }
                _ => self.replay_record(record, sure, present)?,
            };
            if !whole || unreadable.has(record) {
                disputed.note(record);
            }
        }
        Ok(())
    }

    /// Which blocks of each record have their data on the drives: a slot that a later record left
    /// may hold something else by now. A mirror's members are made the same. A write that cannot be read counts as there:
    /// it is not known to be absent, and reads of it fail.
    async fn verify(
        &self,
        records: &[Record],
        unreadable: &mut Unreadable,
    ) -> Result<Vec<BlockMask>, IoError> {
        let mut blocks = Vec::new();
        for (index, record) in records.iter().enumerate() {
            let (first, slot, crcs) = match record {
                Record::Write {
                    first, slot, crcs, ..
                } => (usize::from(*first), *slot, crcs.clone()),
                Record::Promote {
                    volume,
                    chunk,
                    first,
                    count,
                    slot,
                } => {
                    let Ok(Some(map_page)) = self.map_page(*volume, *chunk, false).await else {
                        continue;
                    };
                    let page = map_page.page.borrow();
                    let first = usize::from(*first);
                    let blocks = first..first + usize::from(*count);
                    (first, *slot, blocks.map(|block| page.crc(block)).collect())
                }
                _ => continue,
            };
            blocks.extend((0..crcs.len()).map(|at| Unproven {
                vdrive: slot.vdrive(),
                at: slot.block() + at as u64,
                crc: crcs[at],
                record: index,
                block: first + at,
            }));
        }
        // Writes are packed in the order of arrival: one read covers several.
        blocks.sort_by_key(|block| (block.vdrive, block.at));
        let checks = runs(&blocks).map(|run| async move {
            let Ok(vdrive) = self.vdrive(run[0].vdrive) else {
                return vec![Presence::Wrong; run.len()];
            };
            let right = |index: usize, bytes: &[u8]| crc32c(bytes) == run[index].crc;
            vdrive.right_blocks(run[0].at, run.len(), &right).await
        });
        let found = join_all(checks).await;
        let mut present = vec![BlockMask::default(); records.len()];
        for (block, found) in blocks.iter().zip(found.into_iter().flatten()) {
            // What was promoted is at home as well.
            let record = &records[block.record];
            let unknown = found == Presence::Unreadable && matches!(record, Record::Write { .. });
            if unknown {
                let place = Place::new(block.vdrive, block.at);
                unreadable.note(record, block.block, place);
            }
            if unknown || found == Presence::Right {
                present[block.record].set(block.block);
            }
        }
        if is_on(Mutation::RunWhole) {
            for block in &blocks {
                if !present[block.record].has(block.block) {
                    present[block.record] = BlockMask::default();
                }
            }
        }
        Ok(present)
    }

    /// Which blocks a home holds indeed, and their checksums: of a write whose slot does not hold
    /// it, or what the page says. A mirror's members are made the same. Where it cannot be read, such a write counts as
    /// being there: it is nowhere else.
    async fn at_home(
        &self,
        record: &Record,
        (home, mask): (Place, BlockMask),
        elsewhere: &Elsewhere,
        unreadable: &mut Unreadable,
    ) -> Result<Vec<(usize, u32)>, IoError> {
        let (volume, chunk) = record.subject();
        let (Some(map_page), Ok(vdrive)) = (
            self.map_page(volume, chunk, true).await?,
            self.vdrive(home.vdrive()),
        ) else {
            return Ok(Vec::new());
        };
        let present = map_page.page.borrow().home();
        if present.is_some() && present != home {
            return Ok(Vec::new());
        }
        let candidates = |block: usize| {
            let page = map_page.page.borrow();
            let mapped = page.state(block) != BlockState::Zero;
            let written = elsewhere.get(&(volume, chunk, block)).copied();
            (written, mapped.then(|| page.crc(block)))
        };
        let checks = mask.blocks().map(|block| {
            let (vdrive, (written, mapped)) = (&vdrive, candidates(block));
            async move {
                for crc in written.into_iter().chain(mapped) {
                    let right = |_: usize, bytes: &[u8]| crc32c(bytes) == crc;
                    let at = home.block() + block as u64;
                    match vdrive.presence(at, &right).await {
                        Presence::Right => return Some((block, crc, true)),
                        Presence::Unreadable if written == Some(crc) => {
                            return Some((block, crc, false));
                        }
                        _ => {}
                    }
                }
                None
            }
        });
        let found = join_all(checks).await;
        let found = found.into_iter().flatten();
        Ok(found
            .map(|(block, crc, is_right)| {
                if !is_right {
                    unreadable.note(record, block, home.plus(block as u64));
                }
                (block, crc)
            })
            .collect())
    }

    /// Applies a record of a home that no durable mark covers, as far as the home holds it. The chunk counts as changed where
    /// it holds none of it, too: its page may be of a checkpoint after the record, and have that home by then.
    fn replay_at_home(
        &self,
        record: &Record,
        home: Place,
        at_home: &[(usize, u32)],
        elsewhere: &mut Elsewhere,
    ) -> Result<(), IoError> {
        if at_home.is_empty() && is_on(Mutation::LeftOutUnchanged) {
            return Ok(());
        }
        let (volume, chunk) = record.subject();
        self.with_replay(record, false, |replay| {
            if at_home.is_empty() {
                return Ok(());
            }
            for (block, crc) in at_home {
                // A home that holds what the page says does not hold the newer write.
                let key = (volume, chunk, *block);
                if elsewhere.get(&key) == Some(crc) {
                    elsewhere.remove(&key);
                    replay.free(std::iter::once(*block), &[]);
                    replay.change(*block, |page| {
                        page.set_slot(*block, Place::NONE);
                        page.set_crc(*block, *crc);
                    });
                }
            }
            replay.home(home, at_home.iter().map(|(block, _)| *block).collect())
        })
    }

    /// Applies a record, of writes and promotions what is in `present`. False when some of it was
    /// left out.
    fn replay_record(
        &self,
        record: &Record,
        sure: bool,
        present: BlockMask,
    ) -> Result<bool, IoError> {
        self.with_replay(record, sure, |replay| match record {
            Record::Write {
                first,
                slot,
                crcs,
                old,
                ..
            } => replay.write(*first, *slot, crcs, old, present),
            Record::Trim {
                first, count, old, ..
            } => {
                replay.trim(*first, *count, old);
                Ok(true)
            }
            Record::Promote {
                first, count, slot, ..
            } => replay.promote(*first, *count, *slot, present),
            Record::Evict { mask, old, .. } => Ok(replay.evict(*mask, old)),
            Record::Home { home, mask, .. } => replay.home(*home, *mask).map(|()| true),
            Record::MoveHome { new, old, .. } => replay.move_home(*new, *old),
            Record::Merge { .. } => Ok(true),
        })
    }

    fn with_replay<T>(
        &self,
        record: &Record,
        sure: bool,
        apply: impl FnOnce(&mut Replay<'_>) -> Result<T, IoError>,
    ) -> Result<T, IoError> {
        let (volume, chunk) = record.subject();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let map_page = match state
            .volumes
            .get(&volume)
            .map(|entry| entry.tree.lookup(chunk))
        {
            Some(Lookup::Loaded(map_page)) => map_page.clone(),
            _ => return Err(contradiction("a chunk's page is missing")),
        };
        let mut replay = Replay {
            shard: self,
            state,
            volume,
            map_page: &map_page,
            sure,
        };
        let applied = apply(&mut replay)?;
        self.mark_dirty(state, volume, chunk, &map_page);
        Ok(applied)
    }
}

/// A block of a record: where its data has to be, if it is there.
struct Unproven {
    vdrive: VdriveId,
    at: u64,
    crc: u32,
    /// The record's index, and the block of its chunk.
    record: usize,
    block: usize,
}

/// Blocks that are read together, of blocks in the order of their places.
fn runs(blocks: &[Unproven]) -> impl Iterator<Item = &[Unproven]> {
    let next =
        |left: &Unproven, right: &Unproven| left.vdrive == right.vdrive && left.at + 1 == right.at;
    blocks.chunk_by(next).flat_map(|run| run.chunks(RUN))
}

/// Keeps the checksums of a write whose slot does not hold it; a later write or trim ends that.
fn note_elsewhere(elsewhere: &mut Elsewhere, record: &Record, present: BlockMask) {
    let (volume, chunk) = record.subject();
    match record {
        Record::Write { first, crcs, .. } => {
            for (block, crc) in (usize::from(*first)..).zip(crcs) {
                if present.has(block) {
                    elsewhere.remove(&(volume, chunk, block));
                } else {
                    elsewhere.insert((volume, chunk, block), *crc);
                }
            }
        }
        Record::Trim { first, count, .. } => {
            let first = usize::from(*first);
            for block in first..first + usize::from(*count) {
                elsewhere.remove(&(volume, chunk, block));
            }
        }
        _ => {}
    }
}

/// A page's blocks went into the page of another layer, and what is known of them with them.
fn move_elsewhere(elsewhere: &mut Elsewhere, chunk: u32, upper: u32, lower: u32) {
    let all = (upper, chunk, 0)..(upper, chunk, CHUNK_BLOCKS);
    let moved: Vec<_> = elsewhere
        .range(all)
        .map(|(key, crc)| (key.2, *crc))
        .collect();
    for (block, crc) in moved {
        elsewhere.remove(&(upper, chunk, block));
        elsewhere.insert((lower, chunk, block), crc);
    }
}

/// Blocks in order, as ranges.
fn stretches(blocks: impl Iterator<Item = usize>) -> impl Iterator<Item = Range<usize>> {
    let mut blocks = blocks.peekable();
    std::iter::from_fn(move || {
        let first = blocks.next()?;
        let mut end = first + 1;
        while blocks.next_if_eq(&end).is_some() {
            end += 1;
        }
        Some(first..end)
    })
}

/// Frees slots, neighbours together.
fn free_runs(alloc: &mut Allocator, slots: impl Iterator<Item = Place>) {
    let mut run = (Place::NONE, 0u32);
    for slot in slots.filter(|slot| slot.is_some()).chain([Place::NONE]) {
        // What is freed may have been on a vdrive that left the pool: it was held against none.
        if run.1 > 0 && run.0.checked_plus(u64::from(run.1)) == Some(slot) {
            run.1 += 1;
            continue;
        }
        if run.1 > 0 {
            alloc.replay_slots(run.0, run.1, false);
        }
        run = (slot, 1);
    }
}

fn contradiction(what: &str) -> IoError {
    IoError::new(
        ErrorKind::Medium,
        format!("the journal contradicts the map: {what}"),
    )
}

/// One record being applied.
struct Replay<'a> {
    shard: &'a Shard,
    state: &'a mut State,
    volume: u32,
    map_page: &'a Rc<MapPage>,
    /// Below the durable mark: the record's word counts, since the page may be newer.
    sure: bool,
}

impl Replay<'_> {
    /// Frees the slots that a record leaves.
    fn free(&mut self, blocks: impl Iterator<Item = usize>, old: &[Place]) {
        let alloc = &mut self.state.alloc;
        if self.sure {
            return free_runs(alloc, old.iter().copied());
        }
        let page = self.map_page.page.borrow();
        free_runs(alloc, blocks.map(|block| page.slot(block)));
    }

    /// A missing member lacks this: the record of that may not have reached the labels.
    fn note(&mut self, place: Place, count: usize) {
        self.state.journal.touch(place.vdrive());
        if let Ok(vdrive) = self.shard.vdrive(place.vdrive()) {
            vdrive.note_found(place.block(), count as u64);
        }
    }

    fn take(&mut self, slot: Place, count: usize) -> Result<(), IoError> {
        self.note(slot, count);
        if self.state.alloc.replay_slots(slot, count as u32, true) {
            return Ok(());
        }
        Err(contradiction("a slot belongs to another shard"))
    }

    fn change(&mut self, block: usize, change: impl FnMut(&mut ChunkPage)) {
        self.shard
            .change(self.state, self.volume, self.map_page, block, change);
    }

    fn change_each(
        &mut self,
        blocks: impl Iterator<Item = usize>,
        change: impl FnMut(&mut ChunkPage, usize),
    ) {
        self.shard
            .change_each(self.state, self.volume, self.map_page, blocks, change);
    }

    fn write(
        &mut self,
        first: u8,
        slot: Place,
        crcs: &[u32],
        old: &[Place],
        present: BlockMask,
    ) -> Result<bool, IoError> {
        let first = usize::from(first);
        let there = (first..first + crcs.len()).filter(|block| present.has(*block));
        let whole = there.clone().count() == crcs.len();
        self.free(there.clone(), old);
        for run in stretches(there) {
            let at = |block: usize| slot.plus((block - first) as u64);
            self.take(at(run.start), run.len())?;
            self.change_each(run, |page, block| {
                page.set_slot(block, at(block));
                page.set_crc(block, crcs[block - first]);
                page.set_from(block, 0);
                page.set_home_valid(block, false);
            });
        }
        Ok(whole)
    }

    fn trim(&mut self, first: u8, count: u16, old: &[Place]) {
        let blocks = usize::from(first)..usize::from(first) + usize::from(count);
        self.free(blocks.clone(), old);
        self.change_each(blocks, |page, block| {
            page.set_slot(block, Place::NONE);
            page.set_crc(block, 0);
            page.set_from(block, 0);
            page.set_home_valid(block, false);
        });
    }

    fn promote(
        &mut self,
        first: u8,
        count: u16,
        slot: Place,
        present: BlockMask,
    ) -> Result<bool, IoError> {
        let first = usize::from(first);
        let mut whole = true;
        for block in first..first + usize::from(count) {
            let may_rise =
                self.sure || self.map_page.page.borrow().state(block) == BlockState::Home;
            if !may_rise || !present.has(block) {
                whole = false;
                continue;
            }
            let slot = slot.plus((block - first) as u64);
            self.take(slot, 1)?;
            self.change(block, |page| page.set_slot(block, slot));
        }
        Ok(whole)
    }

    fn evict(&mut self, mask: BlockMask, old: &[Place]) -> bool {
        let valid = self.map_page.page.borrow().home_mask();
        let sure = self.sure;
        let leave = mask.blocks().filter(|block| sure || valid.has(*block));
        let leave: BlockMask = leave.collect();
        self.free(leave.blocks(), old);
        self.change_each(leave.blocks(), |page, block| {
            page.set_slot(block, Place::NONE);
        });
        leave.count() == mask.count()
    }

    fn home(&mut self, home: Place, mask: BlockMask) -> Result<(), IoError> {
        if !self.state.alloc.replay_home(home, true) {
            return Err(contradiction("a home belongs to another shard"));
        }
        self.note(home, CHUNK_BLOCKS);
        self.map_page.page.borrow_mut().set_home(home);
        self.change_each(mask.blocks(), |page, block| {
            page.set_home_valid(block, true);
        });
        Ok(())
    }

    fn move_home(&mut self, new: Place, old: Place) -> Result<bool, IoError> {
        if !self.sure && !self.may_move(new, old) {
            return Ok(false);
        }
        self.state.alloc.replay_home(old, false);
        if new.is_some() && !self.state.alloc.replay_home(new, true) {
            return Err(contradiction("a home belongs to another shard"));
        }
        if new.is_some() {
            self.note(new, CHUNK_BLOCKS);
        }
        self.map_page.page.borrow_mut().set_home(new);
        if new.is_none() {
            self.change_each(0..CHUNK_BLOCKS, |page, block| {
                page.set_home_valid(block, false);
            });
        }
        Ok(true)
    }

    /// A home is left only by what is not valid there: writes that took blocks out of it may not
    /// have survived. A new home holds all that the old one did, before its record is made.
    fn may_move(&self, new: Place, old: Place) -> bool {
        let page = self.map_page.page.borrow();
        if is_on(Mutation::HomeUnproven) {
            return true;
        }
        page.home() == old && (new.is_some() || page.home_mask().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_side_by_side_is_read_together_and_not_more_than_fits() {
        let block = |(vdrive, at)| Unproven {
            vdrive: VdriveId(vdrive),
            at,
            crc: 0,
            record: 0,
            block: 0,
        };
        let places = [(1, 3), (1, 4), (1, 4), (1, 6), (2, 7), (2, 8)];
        let mut blocks: Vec<_> = places.into_iter().map(block).collect();
        blocks.extend((100..117).map(|at| block((2, at))));
        let lengths: Vec<usize> = runs(&blocks).map(<[_]>::len).collect();
        assert_eq!(lengths, [2, 1, 1, 2, RUN, 1]);
    }
}
