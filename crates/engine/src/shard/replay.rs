//! Playing the journal again.
//!
//! Records below the last durable mark are applied as they say. Those after it may have reached
//! the drive without their data: each is applied only if its data is there, and frees what the
//! map says then, not what the record says.

use super::leaf::Leaf;
use super::state::{Shard, State};
use block::{ErrorKind, IoError};
use format::{BlockMask, BlockState, JournalHeader, Record, crc32c};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, Place};

/// A page of the journal.
pub(super) type OpenPage = (JournalHeader, Vec<Record>);

/// Chunks' pages loaded, and data verified, together.
const BATCH: usize = 256;

impl Shard {
    /// Applies the records of these pages; returns how many.
    pub(super) async fn replay(&self, pages: Vec<OpenPage>) -> Result<u64, IoError> {
        let Some((last, _)) = pages.last() else {
            return Ok(0);
        };
        let (next, durable) = (
            last.sequence + 1,
            pages.iter().map(|(header, _)| header.durable_below).max(),
        );
        let durable = durable.unwrap_or(0);
        let mut count = 0;
        for (header, records) in pages {
            count += records.len() as u64;
            let sure = header.sequence < durable;
            for records in records.chunks(BATCH) {
                self.load_subjects(records).await?;
                let present = if sure || is_on(Mutation::Unverified) {
                    vec![true; records.len()]
                } else {
                    self.verify(records).await?
                };
                for (record, present) in records.iter().zip(present) {
                    if present {
                        self.replay_record(record, sure)?;
                    } else {
                        tracing::info!(?record, "an unflushed write did not survive");
                    }
                }
            }
            self.trim_leaves();
        }
        let mut state = self.state.borrow_mut();
        state.journal.next = next;
        state.journal.durable = next;
        Ok(count)
    }

    async fn load_subjects(&self, records: &[Record]) -> Result<(), IoError> {
        let subjects: BTreeSet<_> = records.iter().map(Record::subject).collect();
        for (volume, _) in &subjects {
            self.state
                .borrow_mut()
                .volumes
                .entry(*volume)
                .or_insert_with(|| {
                    super::state::Volume::new(*volume, Default::default(), Default::default())
                });
        }
        let loads = subjects
            .iter()
            .map(|(volume, chunk)| self.leaf(*volume, *chunk, true));
        join_all(loads)
            .await
            .into_iter()
            .try_for_each(|result| result.map(drop))
    }

    /// Which records have their data on the drives. A mirror's legs are made the same.
    async fn verify(&self, records: &[Record]) -> Result<Vec<bool>, IoError> {
        let checks = records.iter().map(|record| async move {
            let (slot, crcs) = match record {
                Record::Write { slot, crcs, .. } => (*slot, crcs.clone()),
                Record::Promote {
                    volume,
                    chunk,
                    first,
                    count,
                    slot,
                } => {
                    let Ok(Some(leaf)) = self.leaf(*volume, *chunk, true).await else {
                        return false;
                    };
                    let page = leaf.page.borrow();
                    let first = usize::from(*first);
                    (
                        *slot,
                        (first..first + usize::from(*count))
                            .map(|block| page.crc(block))
                            .collect(),
                    )
                }
                _ => return true,
            };
            let Ok(vdrive) = self.vdrive(slot.vdrive()) else {
                return false;
            };
            for (index, crc) in crcs.iter().enumerate() {
                let right = |_: usize, bytes: &[u8]| crc32c(bytes) == *crc;
                if vdrive
                    .read_every_leg(slot.block() + index as u64, &right)
                    .await
                    .is_err()
                {
                    return false;
                }
            }
            true
        });
        Ok(join_all(checks).await)
    }

    fn replay_record(&self, record: &Record, sure: bool) -> Result<(), IoError> {
        let (volume, chunk) = record.subject();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let leaf = match state
            .volumes
            .get(&volume)
            .map(|entry| entry.tree.lookup(chunk))
        {
            Some(crate::tree::Lookup::Loaded(leaf)) => leaf.clone(),
            _ => return Err(contradiction("a chunk's page is missing")),
        };
        let mut replay = Replay {
            shard: self,
            state,
            volume,
            leaf: &leaf,
            sure,
        };
        match record {
            Record::Write {
                first,
                slot,
                crcs,
                old,
                ..
            } => replay.write(*first, *slot, crcs, old)?,
            Record::Trim {
                first, count, old, ..
            } => replay.trim(*first, *count, old),
            Record::Promote {
                first, count, slot, ..
            } => replay.promote(*first, *count, *slot)?,
            Record::Evict { mask, old, .. } => replay.evict(*mask, old),
            Record::Home { home, mask, .. } => replay.home(*home, *mask)?,
            Record::MoveHome { new, old, .. } => replay.move_home(*new, *old)?,
        }
        self.mark_dirty(state, volume, chunk, &leaf);
        self.note_chunk(state, volume, chunk, &leaf);
        Ok(())
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
    leaf: &'a Rc<Leaf>,
    /// Below the durable mark: the record's word counts, since the page may be newer.
    sure: bool,
}

impl Replay<'_> {
    /// Frees the slots that a record leaves.
    fn free(
        &mut self,
        blocks: impl Iterator<Item = usize>,
        old: &[Place],
        keep: impl Fn(Place) -> bool,
    ) {
        let slots: Vec<_> = if self.sure {
            old.to_vec()
        } else {
            let page = self.leaf.page.borrow();
            blocks.map(|block| page.slot(block)).collect()
        };
        for slot in slots
            .into_iter()
            .filter(|slot| slot.is_some() && !keep(*slot))
        {
            self.state.alloc.replay_slots(slot, 1, false);
        }
    }

    /// A leg that is away lacks this: what tells of that may not have reached the labels.
    fn note(&self, place: Place, count: usize) {
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

    fn change(&mut self, block: usize, change: impl FnOnce(&mut format::ChunkPage)) {
        self.shard
            .change(self.state, self.volume, self.leaf, block, change);
    }

    fn write(
        &mut self,
        first: u8,
        slot: Place,
        crcs: &[u32],
        old: &[Place],
    ) -> Result<(), IoError> {
        let first = usize::from(first);
        self.free(first..first + crcs.len(), old, |_| false);
        self.take(slot, crcs.len())?;
        for (index, crc) in crcs.iter().enumerate() {
            self.change(first + index, |page| {
                page.set_slot(first + index, slot.plus(index as u64));
                page.set_crc(first + index, *crc);
                page.set_home_valid(first + index, false);
            });
        }
        Ok(())
    }

    fn trim(&mut self, first: u8, count: u16, old: &[Place]) {
        let blocks = usize::from(first)..usize::from(first) + usize::from(count);
        self.free(blocks.clone(), old, |_| false);
        for block in blocks {
            self.change(block, |page| {
                page.set_slot(block, Place::NONE);
                page.set_crc(block, 0);
                page.set_home_valid(block, false);
            });
        }
    }

    fn promote(&mut self, first: u8, count: u16, slot: Place) -> Result<(), IoError> {
        let first = usize::from(first);
        let count = usize::from(count);
        let at_home = (first..first + count)
            .all(|block| self.leaf.page.borrow().state(block) == BlockState::Home);
        if !self.sure && !at_home {
            return Ok(());
        }
        self.take(slot, count)?;
        for index in 0..count {
            self.change(first + index, |page| {
                page.set_slot(first + index, slot.plus(index as u64))
            });
        }
        Ok(())
    }

    fn evict(&mut self, mask: BlockMask, old: &[Place]) {
        if !self.sure {
            let valid = self.leaf.page.borrow().home_mask();
            let mask: BlockMask = mask.blocks().filter(|block| valid.has(*block)).collect();
            self.free(mask.blocks(), &[], |_| false);
            mask.blocks()
                .for_each(|block| self.change(block, |page| page.set_slot(block, Place::NONE)));
            return;
        }
        self.free(mask.blocks(), old, |_| false);
        mask.blocks()
            .for_each(|block| self.change(block, |page| page.set_slot(block, Place::NONE)));
    }

    fn home(&mut self, home: Place, mask: BlockMask) -> Result<(), IoError> {
        if !self.state.alloc.replay_home(home, true) {
            return Err(contradiction("a home belongs to another shard"));
        }
        self.note(home, CHUNK_BLOCKS);
        self.leaf.page.borrow_mut().set_home(home);
        mask.blocks()
            .for_each(|block| self.change(block, |page| page.set_home_valid(block, true)));
        Ok(())
    }

    fn move_home(&mut self, new: Place, old: Place) -> Result<(), IoError> {
        self.state.alloc.replay_home(old, false);
        if new.is_some() && !self.state.alloc.replay_home(new, true) {
            return Err(contradiction("a home belongs to another shard"));
        }
        if new.is_some() {
            self.note(new, CHUNK_BLOCKS);
        }
        self.leaf.page.borrow_mut().set_home(new);
        if new.is_none() {
            (0..CHUNK_BLOCKS)
                .for_each(|block| self.change(block, |page| page.set_home_valid(block, false)));
        }
        Ok(())
    }
}
