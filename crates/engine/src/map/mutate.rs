//! Changes of a chunk's page, each with its record. The live path and recovery share them.

use super::page::MapPage;
use crate::cache::fill::extents_of;
use crate::shard::state::{Shard, State};
use crate::space::{Class, Run};
use block::IoError;
use format::{BlockMask, BlockState, ChunkPage, Few, Record};
use std::rc::Rc;
use units::invariant::is_watched;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, Place};

impl Shard {
    /// Changes a block and keeps its layer's counts true. Where it maps a block that was not, or the
    /// other way round, [`Shard::claim`] comes before it or [`State::settle`] after it.
    pub(crate) fn change(
        &self,
        state: &mut State,
        volume: u32,
        map_page: &MapPage,
        block: usize,
        mut change: impl FnMut(&mut ChunkPage),
    ) {
        let one = std::iter::once(block);
        self.change_each(state, volume, map_page, one, |page, _| change(page));
    }

    /// As [`Shard::change`], of several blocks.
    pub(crate) fn change_each(
        &self,
        state: &mut State,
        volume: u32,
        map_page: &MapPage,
        blocks: impl Iterator<Item = usize>,
        mut change: impl FnMut(&mut ChunkPage, usize),
    ) {
        let Some(entry) = state.volumes.get_mut(&volume) else {
            return;
        };
        let had = entry.fast();
        let mut page = map_page.page.borrow_mut();
        for block in blocks {
            let before = self
                .counter(&page, block, &mut entry.counts)
                .map(|count| *count = count.saturating_sub(1));
            change(&mut page, block);
            let after = self
                .counter(&page, block, &mut entry.counts)
                .map(|count| *count += 1);
            if is_on(Mutation::CountOff) && before.is_some() && after.is_some() {
                self.shared.space.count(1);
            }
        }
        if let Some(settings) = &entry.settings {
            settings.note(entry.fast() - had);
        }
    }

    /// Marks a page as changed.
    pub(crate) fn mark_dirty(
        &self,
        state: &mut State,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
    ) {
        if !map_page.dirty.replace(true) {
            state.dirty_pages.push(volume, chunk, map_page);
            if let Some(entry) = state.volumes.get_mut(&volume) {
                entry.tree.renew_nodes(chunk);
            }
        }
    }

    /// Remembers which kind of fast blocks the chunk has, for demotion and eviction.
    pub(crate) fn note_chunk(
        &self,
        state: &mut State,
        volume: u32,
        chunk: u32,
        map_page: &MapPage,
    ) {
        let counts = self.count(&map_page.page.borrow());
        let key = (volume, chunk);
        let (dirty, clean) = (counts.fast != 0, counts.clean != 0);
        state.tier_index.set(key, dirty, clean);
        self.tell_placed(state, key, map_page, u16::MAX);
    }

    /// Slots of blocks, if any has one.
    pub(crate) fn slots_of(page: &ChunkPage, blocks: impl Iterator<Item = usize>) -> Few<Place> {
        let mut slots = Few::new();
        let mut any = false;
        for block in blocks {
            let slot = page.slot(block);
            any |= slot.is_some();
            slots.push(slot);
        }
        if !any {
            slots.clear();
        }
        slots
    }

    /// Blocks from `first` on have new content in `run`, which the next barrier makes durable.
    ///
    /// # Errors
    /// When the journal takes no record any longer.
    pub(crate) fn apply_write(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        first: usize,
        run: Run,
        crcs: &[u32],
    ) -> Result<(), IoError> {
        let were_there = self.are_fast_alone(&map_page.page.borrow(), first..first + run.count);
        let mut state = self.state.borrow_mut();
        let known = (run, were_there);
        self.apply_content(&mut state, (volume, chunk), map_page, first, known, crcs)?;
        state.journal.touch(run.place.vdrive());
        Ok(())
    }

    /// As [`Shard::apply_write`], for content that is durable already: no barrier flushes a drive for it.
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn apply_flushed(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        first: usize,
        run: Run,
        crcs: &[u32],
    ) -> Result<(), IoError> {
        let were_there = self.are_fast_alone(&map_page.page.borrow(), first..first + run.count);
        let mut state = self.state.borrow_mut();
        let known = (run, were_there);
        self.apply_content(&mut state, (volume, chunk), map_page, first, known, crcs)
    }

    /// The same with what is known of the blocks: whether the fast tier had them until now, and nothing else
    /// ([`Shard::are_fast_alone`]).
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn apply_content(
        &self,
        state: &mut State,
        (volume, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        first: usize,
        (run, were_there): (Run, bool),
        crcs: &[u32],
    ) -> Result<(), IoError> {
        let blocks = first..first + run.count;
        let record = Record::Write {
            volume,
            chunk,
            first: first as u8,
            slot: run.place,
            crcs: Few::from_slice(crcs),
            old: Self::slots_of(&map_page.page.borrow(), blocks.clone()),
        };
        self.append(state, &record)?;
        self.fetching.some();
        state.alloc.recorded(run.place);
        self.free_slots(state, record.old_slots());
        self.fetching.some();
        let write = |page: &mut ChunkPage, block: usize| {
            let index = block - first;
            page.set_slot(block, run.place.plus(index as u64));
            page.set_crc(block, crcs[index]);
            self.devices
                .check_content(run.place.plus(index as u64), crcs[index]);
            page.set_from(block, 0);
            let kept = is_on(Mutation::WriteKeepsHome) && page.home_valid(block);
            page.set_home_valid(block, kept);
        };
        let is_fast = self.class(run.place) == Class::Fast;
        if is_fast && were_there && !is_on(Mutation::CountOff) {
            // Nothing changes in the counts, and most writes are like that.
            let mut page = map_page.page.borrow_mut();
            blocks.clone().for_each(|block| write(&mut page, block));
        } else {
            self.change_each(state, volume, map_page, blocks.clone(), write);
        }
        blocks.for_each(|block| state.ram.invalidate(map_page, block));
        self.mark_dirty(state, volume, chunk, map_page);
        if is_fast {
            // Other slots are nothing that the policy knows of, nor that changes what can be demoted.
            state.tier_index.written((volume, chunk), were_there);
            if !were_there {
                let extents = extents_of(&BlockMask::of(first, run.count));
                self.tell_placed(state, (volume, chunk), map_page, extents);
            }
        } else {
            self.note_chunk(state, volume, chunk, map_page);
            self.note_lowered(state, (volume, chunk), first, run.count);
        }
        Ok(())
    }

    /// Whether the fast tier has these blocks, and nothing else.
    #[inline]
    pub(crate) fn are_fast_alone(
        &self,
        page: &ChunkPage,
        mut blocks: std::ops::Range<usize>,
    ) -> bool {
        blocks.all(|block| {
            let slot = page.slot(block);
            slot.is_some() && !page.home_valid(block) && self.class(slot) == Class::Fast
        })
    }

    /// Blocks are zeroes.
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn apply_trim(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        first: usize,
        count: usize,
    ) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        let blocks = first..first + count;
        let zero = |block| {
            let page = map_page.page.borrow();
            page.state(block) == BlockState::Zero && page.from(block) == 0
        };
        if blocks.clone().all(zero) && map_page.page.borrow().home().is_none() {
            return Ok(());
        }
        let record = Record::Trim {
            volume,
            chunk,
            first: first as u8,
            count: count as u16,
            old: Self::slots_of(&map_page.page.borrow(), blocks.clone()),
        };
        self.append(&mut state, &record)?;
        if !is_on(Mutation::TrimLeaks) {
            self.free_slots(&mut state, record.old_slots());
        }
        for block in blocks {
            self.change(&mut state, volume, map_page, block, |page| {
                page.set_slot(block, Place::NONE);
                page.set_crc(block, 0);
                page.set_from(block, 0);
                let kept = is_on(Mutation::TrimKeepsHome) && page.home_valid(block);
                page.set_home_valid(block, kept);
            });
            state.ram.invalidate(map_page, block);
        }
        state.settle(&[volume], &self.shared.space);
        let page = map_page.page.borrow();
        let home = page.home();
        let stale = home.is_some() && page.home_mask().is_empty();
        drop(page);
        if stale && (!map_page.busy.get() || is_on(Mutation::TrimBusy)) {
            self.drop_home(&mut state, volume, chunk, map_page, home)?;
        }
        self.mark_dirty(&mut state, volume, chunk, map_page);
        self.note_chunk(&mut state, volume, chunk, map_page);
        Ok(())
    }

    /// Frees the chunk's home without valid blocks.
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn drop_home(
        &self,
        state: &mut State,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        home: Place,
    ) -> Result<(), IoError> {
        self.append(
            state,
            &Record::MoveHome {
                volume,
                chunk,
                new: Place::NONE,
                old: home,
            },
        )?;
        state.alloc.touch_home(home);
        self.devices.check_unwritten(home, CHUNK_BLOCKS);
        state.deferred_frees.home(home);
        map_page.page.borrow_mut().set_home(Place::NONE);
        self.mark_dirty(state, volume, chunk, map_page);
        Ok(())
    }

    /// Blocks that are at home have copies in `run`, too.
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn apply_promote(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        first: usize,
        run: Run,
    ) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        let count = run.count as u16;
        let record = Record::Promote {
            volume,
            chunk,
            first: first as u8,
            count,
            slot: run.place,
        };
        self.append(&mut state, &record)?;
        state.alloc.recorded(run.place);
        for index in 0..run.count {
            self.change(&mut state, volume, map_page, first + index, |page| {
                page.set_slot(first + index, run.place.plus(index as u64));
            });
            let crc = map_page.page.borrow().crc(first + index);
            self.devices
                .check_content(run.place.plus(index as u64), crc);
        }
        state.journal.touch(run.place.vdrive());
        state.tier_index.copied((volume, chunk));
        let extents = extents_of(&(first..first + run.count).collect());
        self.tell_placed(&mut state, (volume, chunk), map_page, extents);
        self.mark_dirty(&mut state, volume, chunk, map_page);
        Ok(())
    }

    /// Frees the slots of blocks that are valid at home.
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn apply_evict(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        mask: BlockMask,
    ) -> Result<(), IoError> {
        if mask.is_empty() {
            return Ok(());
        }
        let mut state = self.state.borrow_mut();
        let slot = |block| map_page.page.borrow().slot(block);
        let record = Record::Evict {
            volume,
            chunk,
            mask,
            old: mask.blocks().map(slot).collect(),
        };
        self.append(&mut state, &record)?;
        self.free_slots(&mut state, record.old_slots());
        for block in mask.blocks() {
            self.change(&mut state, volume, map_page, block, |page| {
                page.set_slot(block, Place::NONE)
            });
        }
        self.mark_dirty(&mut state, volume, chunk, map_page);
        self.note_chunk(&mut state, volume, chunk, map_page);
        Ok(())
    }

    /// The home holds the present content of the blocks in `mask`, too; it is durable there.
    ///
    /// # Errors
    /// As [`Shard::apply_write`].
    pub(crate) fn apply_home(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        home: Place,
        mask: BlockMask,
    ) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        self.append(
            &mut state,
            &Record::Home {
                volume,
                chunk,
                home,
                mask,
            },
        )?;
        state.alloc.recorded(home);
        self.check_home(map_page, home, mask);
        map_page.page.borrow_mut().set_home(home);
        for block in mask.blocks() {
            self.change(&mut state, volume, map_page, block, |page| {
                page.set_home_valid(block, true)
            });
        }
        self.mark_dirty(&mut state, volume, chunk, map_page);
        self.note_chunk(&mut state, volume, chunk, map_page);
        Ok(())
    }

    /// Invariant: what counts as valid at a home was written there.
    pub(crate) fn check_home(&self, map_page: &MapPage, home: Place, mask: BlockMask) {
        if is_watched() {
            for block in mask.blocks() {
                let crc = map_page.page.borrow().crc(block);
                self.devices.check_content(home.plus(block as u64), crc);
            }
        }
    }

    #[inline]
    pub(crate) fn free_slots(&self, state: &mut State, old: &[Place]) {
        for place in old.iter().filter(|place| place.is_some()) {
            // The next checkpoint records the slot as free, whether it is released by then or not.
            state.alloc.touch(*place);
            self.devices.check_unwritten(*place, 1);
            state.deferred_frees.slots(*place, 1);
        }
        if is_on(Mutation::ReuseUndurable) {
            state.deferred_frees.seal(0);
            while let Some(batch) = state.deferred_frees.release(0) {
                state.alloc.release(&batch);
            }
        }
    }
}
