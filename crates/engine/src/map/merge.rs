//! Merging a layer's pages into those of its parent layer, which is no longer referenced
//! (docs/snapshots.md).
//!
//! A chunk is merged without waiting in between, and never while a checkpoint collects pages: a
//! checkpoint has all of it or nothing, and its record, replayed again, finds the pages as they were.

use super::page::{ChunkLock, Make, MapPage};
use super::radix::Lookup;
use crate::control::explain::Cause;
use crate::maintenance::layer_gc::Turns;
use crate::shard::state::{Shard, State};
use crate::tiering::unreadable::UnreadableBlocks;
use crate::wal::log::Work;
use crate::wal::reservations::Room;
use block::{ErrorKind, IoError};
use format::{ChunkPage, Record};
use std::pin::pin;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, Place};

/// Time between tries while other work has a chunk, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000;
/// Time for which room is reserved while a checkpoint is being written, in nanoseconds.
const KEPT_NS: u64 = 200_000_000;

impl Shard {
    /// Merges every page of a layer into the one beneath. From its beginning on, writes to chunks without a
    /// page go to the one beneath.
    ///
    /// # Errors
    /// A drive's error, or `Gone` when the shard is closing. Calling again continues.
    pub(crate) async fn merge_layer(
        &self,
        upper: u32,
        turns: &mut Turns<'_>,
    ) -> Result<(), IoError> {
        self.begin_merge(upper);
        let merged = self.merge_chunks(upper, turns).await;
        if merged.is_err()
            && let Some(entry) = self.state.borrow_mut().volumes.get_mut(&upper)
        {
            entry.merging = false;
        }
        merged
    }

    fn begin_merge(&self, upper: u32) {
        let volumes = &mut self.state.borrow_mut().volumes;
        let Some(entry) = volumes.get_mut(&upper) else {
            return;
        };
        entry.merging = true;
        let lower = entry.parent;
        if let Some(lower) = volumes.get_mut(&lower) {
            lower.mixed = true;
        }
    }

    async fn merge_chunks(&self, upper: u32, turns: &mut Turns<'_>) -> Result<(), IoError> {
        let mut from = Some(0u32);
        while let Some(start) = from {
            let keys = self.next_chunks(upper, start).await?;
            for key in &keys {
                self.merge_chunk(upper, *key).await?;
                turns.next(self).await?;
            }
            from = keys.last().and_then(|last| last.checked_add(1));
            self.trim_pages();
        }
        Ok(())
    }

    async fn merge_chunk(&self, upper: u32, chunk: u32) -> Result<(), IoError> {
        loop {
            let Some(up) = self.map_page(upper, chunk, false).await? else {
                return Ok(());
            };
            let lower = self.state.borrow().volumes[&upper].parent;
            let Some(low) = self.page_or(lower, chunk, Make::InExchange).await? else {
                return Ok(());
            };
            let room = self.room_between_checkpoints().await?;
            if up.freed.get() {
                return Ok(());
            }
            if low.freed.get() {
                continue;
            }
            let (Some(_up), Some(_low)) = (ChunkLock::try_new(&up), ChunkLock::try_new(&low))
            else {
                drop(room);
                self.handle.sleep(PAUSE_NS).await;
                continue;
            };
            let mut merged = low.page.borrow().clone();
            let Some((slots, home)) = merged.merge(&up.page.borrow()) else {
                drop(room);
                let mut unread = UnreadableBlocks::default();
                self.dissolve_home(upper, chunk, &up, &mut unread).await?;
                if unread.count > 0 {
                    let text = format!(
                        "{} blocks of chunk {chunk} cannot be read and therefore cannot be moved",
                        unread.count
                    );
                    return Err(IoError::new(ErrorKind::Medium, text));
                }
                continue;
            };
            let mut state = self.state.borrow_mut();
            let record = Record::Merge {
                volume: upper,
                chunk,
                lower,
            };
            self.append(&mut state, &record)?;
            let own = {
                let page = up.page.borrow();
                let stored = page.slot_mask().or(page.home_mask());
                stored.and_not(page.inherited())
            };
            self.note_moves(&mut state, Cause::Merged, (lower, chunk), &own);
            self.set_merged(&mut state, (upper, &up), (lower, &low), chunk, merged);
            if !is_on(Mutation::MergeLeaks) {
                self.free_slots(&mut state, &slots);
            }
            if home.is_some() {
                state.alloc.touch_home(home);
                self.devices.check_unwritten(home, CHUNK_BLOCKS);
                state.deferred_frees.home(home);
            }
            self.note_chunk(&mut state, upper, chunk, &up);
            self.note_chunk(&mut state, lower, chunk, &low);
            return Ok(());
        }
    }

    /// Room for a mover's work while no checkpoint is being written. The next one may begin as soon as this waits for anything
    /// else. Where one follows another and hosts take what room there is, who gave it back until a checkpoint ends would
    /// never come to their turn: it is kept, though not for long, as the checkpoint may wait for it.
    async fn room_between_checkpoints(&self) -> Result<Room<'_>, IoError> {
        loop {
            let room = self.journal_room(Work::Mover).await?;
            let until = self.handle.now_ns() + KEPT_NS;
            loop {
                let ended = self.checkpoints.until_ended();
                if !self.checkpoints.is_taken() {
                    return Ok(room);
                }
                let left = until.saturating_sub(self.handle.now_ns());
                if left == 0 {
                    break;
                }
                futures_util::future::select(pin!(ended), self.handle.sleep(left)).await;
            }
            drop(room);
            self.no_checkpoint().await?;
        }
    }

    /// The lower page is `merged`; the upper one is empty, and counts as absent.
    fn set_merged(
        &self,
        state: &mut State,
        (upper, up): (u32, &Rc<MapPage>),
        (lower, low): (u32, &Rc<MapPage>),
        chunk: u32,
        merged: ChunkPage,
    ) {
        let inherited = up.page.borrow().inherited();
        for block in (0..CHUNK_BLOCKS).filter(|block| !inherited.has(*block)) {
            self.change(state, lower, low, block, |page| {
                page.set_slot(block, merged.slot(block));
                page.set_crc(block, merged.crc(block));
                page.set_from(block, 0);
                page.set_home_valid(block, merged.home_valid(block));
            });
            if !is_on(Mutation::MergeRam) {
                state.ram.invalidate(low, block);
            }
        }
        low.page.borrow_mut().set_home(merged.home());
        low.written_ns
            .set(low.written_ns.get().max(up.written_ns.get()));
        self.free_page(state, upper, up);
        state.settle(&[lower, upper], &self.shared.space);
        self.mark_dirty(state, upper, chunk, up);
        self.mark_dirty(state, lower, chunk, low);
    }

    /// Empties a page: it counts as absent, and the next checkpoint takes it out of the tree.
    fn free_page(&self, state: &mut State, layer: u32, map_page: &Rc<MapPage>) {
        for block in 0..CHUNK_BLOCKS {
            self.change(state, layer, map_page, block, |page| {
                page.set_slot(block, Place::NONE);
                page.set_from(block, 0);
                page.set_home_valid(block, false);
            });
            state.ram.invalidate(map_page, block);
        }
        map_page.page.borrow_mut().set_home(Place::NONE);
        map_page.freed.set(true);
    }

    /// A layer that is no more needs no page that says that it has zeroes.
    pub(crate) fn free_page_if_gone(&self, layer: u32, chunk: u32, map_page: &Rc<MapPage>) {
        let mut state = self.state.borrow_mut();
        let gone = state.volumes.get(&layer).is_none_or(|entry| entry.gone);
        let empty = map_page.page.borrow().home().is_none();
        if gone && empty && !map_page.freed.get() {
            self.free_page(&mut state, layer, map_page);
            self.mark_dirty(&mut state, layer, chunk, map_page);
        }
    }

    /// Replays a merge again. One that cannot be (writes before it that were not flushed did not
    /// survive) is left out: the upper page then still hides the lower one.
    ///
    /// # Errors
    /// A drive's error.
    pub(crate) async fn replay_merge(
        &self,
        lower: u32,
        upper: u32,
        chunk: u32,
    ) -> Result<bool, IoError> {
        let up = self.map_page(upper, chunk, true).await?;
        let low = self.map_page(lower, chunk, true).await?;
        let (Some(up), Some(low)) = (up, low) else {
            return Ok(false);
        };
        let mut merged = low.page.borrow().clone();
        let together = merged.merge(&up.page.borrow());
        let mut state = self.state.borrow_mut();
        let Some((slots, home)) = together else {
            // What they have is held against what records name that were left out, as with every chunk of the journal.
            self.mark_dirty(&mut state, upper, chunk, &up);
            self.mark_dirty(&mut state, lower, chunk, &low);
            return Ok(false);
        };
        self.set_merged(&mut state, (upper, &up), (lower, &low), chunk, merged);
        for slot in slots {
            state.alloc.replay_slots(slot, 1, false);
        }
        if home.is_some() {
            state.alloc.replay_home(home, false);
        }
        Ok(true)
    }

    /// A layer without pages is no more: the one beneath has its place, its children and the
    /// volumes that it was live for.
    /// With `is_volume` a volume has its number, and is that volume's live one.
    pub async fn adopt(&self, upper: u32, lower: u32, is_volume: bool) {
        self.take_place(upper, lower, is_volume);
        self.remove_layer(upper).await;
    }

    fn take_place(&self, upper: u32, lower: u32, is_volume: bool) {
        let mut state = self.state.borrow_mut();
        let Some(entry) = state.volumes.get_mut(&upper) else {
            return;
        };
        let (epoch, counters) = (entry.epoch, entry.counters);
        let spread = entry.spread.take();
        for entry in state.volumes.values_mut() {
            if entry.parent == upper && !is_on(Mutation::OrphansKept) {
                entry.parent = lower;
            }
        }
        if let Some(entry) = state.volumes.get_mut(&lower) {
            (entry.epoch, entry.mixed) = (epoch, false);
            (entry.counters, entry.spread) = (counters, spread);
        }
        state.paths.forget();
        state.active.merge(upper, lower, is_volume);
    }

    /// Forgets a layer that has nothing; a checkpoint that is being written still goes through it.
    pub async fn remove_layer(&self, layer: u32) {
        loop {
            let ended = self.checkpoints.until_ended();
            if !self.checkpoints.is_taken() {
                break;
            }
            ended.await;
        }
        let mut state = self.state.borrow_mut();
        state.volumes.remove(&layer);
        state.paths.forget();
        state.tier_index.forget_layer(layer);
        state.page_cache.forget_layer(layer);
        state.access.forget_layer(layer);
    }

    /// Whether a layer has no page, in memory or on the drives.
    pub fn is_empty(&self, layer: u32) -> bool {
        let state = self.state.borrow();
        let Some(entry) = state.volumes.get(&layer) else {
            return true;
        };
        let (keys, need) = entry.tree.scan(0, usize::MAX);
        need.is_none()
            && keys.iter().all(|key| match entry.tree.lookup(*key) {
                Lookup::Loaded(map_page) => map_page.freed.get(),
                Lookup::Absent => true,
                Lookup::OnDisk(_) | Lookup::NeedNode(..) => false,
            })
    }
}

#[cfg(test)]
mod tests;
