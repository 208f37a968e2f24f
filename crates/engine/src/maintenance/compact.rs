//! Compaction: scattered blocks are moved together, so that groups become free.
//!
//! Slots go into slots of other groups, homes into homes. The blocks of a home that is mostly invalid go into
//! slots; so the home is free. Leaves out: when it is wanted (`maintenance/rebalance.rs`).

use super::upkeep::Throttle;
use crate::control::explain::Cause;
use crate::map::page::{ChunkLock, MapPage};
use crate::shard::state::{Shard, State};
use crate::space::Class;
use crate::tiering::explain::Descent;
use crate::tiering::unreadable::UnreadableBlocks;
use crate::tiering::writeback::{Job, Moving, Target};
use crate::vdrive::Purpose;
use crate::wal::log::Work;
use block::{ErrorKind, IoError};
use format::{BlockMask, BlockState, ChunkPage};
use std::rc::Rc;
use units::CHUNK_BLOCKS;

/// Remaining work on the shard's chunks.
struct Compaction<'a> {
    shard: &'a Shard,
    /// Slots to move out of their groups.
    slots: u64,
    /// Homes to move out of theirs.
    homes: u64,
    /// Homes to dissolve, with at most this many valid blocks.
    sparse: (u64, usize),
    /// Dissolved homes.
    dissolved: u64,
    /// Only slots of the fast tier are concerned.
    fast_alone: bool,
    pace: Throttle<'a>,
}

impl Shard {
    /// Empties groups into the shard's other groups, up to `most` of each kind. At a rate that does not
    /// disturb hosts, unless one waits for space.
    ///
    /// # Errors
    /// A drive's error; data moved before stays moved.
    pub(super) async fn move_together(&self, most: usize) -> Result<(), IoError> {
        let (fast, slow, homes) = {
            let alloc = &mut self.state.borrow_mut().alloc;
            let fast = alloc.close_slots(Class::Fast, most);
            let slow = alloc.close_slots(Class::Slow, most);
            (fast, slow, alloc.close_homes(most))
        };
        let mut work = Compaction {
            slots: fast + slow,
            homes,
            fast_alone: slow + homes == 0,
            ..Compaction::new(self)
        };
        let result = work.all_layers().await;
        // The old space is freed once it is no longer needed.
        let settled = self.barrier().await;
        self.state.borrow_mut().alloc.reopen();
        result.and(settled)
    }

    /// Dissolves homes of which at most `valid` blocks are valid, as far as there are slots for those: for
    /// one group at least, or none, and for `most` groups at most. Returns how many.
    ///
    /// # Errors
    /// A drive's error; data moved before stays moved.
    pub(super) async fn dissolve_homes(&self, valid: usize, most: usize) -> Result<u64, IoError> {
        let wanted = {
            let state = self.state.borrow();
            let alloc = &state.alloc;
            let free = alloc.free_slots(Class::Fast) + alloc.free_slots(Class::Slow);
            let (room, group) = (free / valid as u64, u64::from(alloc.group_homes()));
            match room >= group && self.wasted_homes(&state) >= self.config.group_blocks {
                true => room.min(group * most as u64),
                false => return Ok(0),
            }
        };
        let mut work = Compaction {
            sparse: (wanted, valid),
            ..Compaction::new(self)
        };
        let result = work.all_layers().await;
        self.barrier().await?;
        result.map(|()| work.dissolved)
    }

    /// Blocks of homes without valid blocks.
    fn wasted_homes(&self, state: &State) -> u64 {
        let layers = state.volumes.values();
        let valid = layers.map(|layer| layer.counts.home + layer.counts.clean);
        state.alloc.home_blocks().saturating_sub(valid.sum())
    }
}

impl<'a> Compaction<'a> {
    fn new(shard: &'a Shard) -> Self {
        Self {
            shard,
            slots: 0,
            homes: 0,
            sparse: (0, 0),
            dissolved: 0,
            fast_alone: false,
            pace: Throttle::reclaim(&shard.upkeep),
        }
    }

    fn is_done(&self) -> bool {
        self.slots + self.homes + self.sparse.0 == 0 || self.shard.lifecycle.is_closing()
    }

    async fn all_layers(&mut self) -> Result<(), IoError> {
        let layers: Vec<u32> = self.shard.state.borrow().volumes.keys().copied().collect();
        for layer in layers {
            let mut from = Some(0);
            while let Some(start) = from
                && !self.is_done()
            {
                let keys = self.shard.next_chunks(layer, start).await?;
                from = keys.last().and_then(|last| last.checked_add(1));
                for chunk in keys {
                    if self.is_done() {
                        return Ok(());
                    }
                    if self.may_have(layer, chunk) {
                        self.look_at(layer, chunk).await?;
                    }
                }
                self.shard.trim_pages();
                self.pause().await;
            }
        }
        Ok(())
    }

    /// Chunks with slots on the fast tier are known by their number.
    fn may_have(&self, layer: u32, chunk: u32) -> bool {
        let state = self.shard.state.borrow();
        let key = (layer, chunk);
        !self.fast_alone || self.shard.moves.is_surveying() || state.tier_index.contains(&key)
    }

    async fn look_at(&mut self, layer: u32, chunk: u32) -> Result<(), IoError> {
        let Ok(Some(map_page)) = self.shard.map_page(layer, chunk, false).await else {
            return Ok(());
        };
        // Blocks in use by other work stay: their group is not freed this time.
        let mut worked = match ChunkLock::try_new(&map_page) {
            Some(_busy) => self.home(layer, chunk, &map_page).await?,
            None => false,
        };
        for class in [Class::Fast, Class::Slow] {
            if let Some(busy) = ChunkLock::try_new(&map_page) {
                worked |= self.slots((layer, chunk), &map_page, busy, class).await?;
            }
        }
        if worked {
            self.pause().await;
        }
        Ok(())
    }

    /// Leaves the drives to hosts, unless one waits for space.
    async fn pause(&mut self) {
        match self.shard.is_space_awaited() {
            true => self.shard.handle.yield_now().await,
            false => self.pace.wait(1).await,
        }
    }

    /// Moves a home, or dissolves it.
    async fn home(
        &mut self,
        layer: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
    ) -> Result<bool, IoError> {
        let shard = self.shard;
        let (home, valid) = {
            let page = map_page.page.borrow();
            (page.home(), page.home_mask().count())
        };
        let leaves = shard.state.borrow().alloc.is_leaving(home);
        if home.is_none() || !leaves && (self.sparse.0 == 0 || valid > self.sparse.1) {
            return Ok(false);
        }
        let moved = match leaves {
            true => {
                self.homes = self.homes.saturating_sub(1);
                shard
                    .move_home(layer, chunk, map_page, &mut UnreadableBlocks::default())
                    .await
            }
            false => {
                let moved = shard.dissolve_whole(layer, chunk, map_page).await;
                self.sparse.0 -= 1;
                self.dissolved += u64::from(moved.is_ok());
                moved
            }
        };
        match moved {
            // There is no room for more: it ends here.
            Err(error) if error.kind == ErrorKind::NoSpace => self.sparse.0 = 0,
            Err(error) if error.kind == ErrorKind::Medium => {}
            other => drop(other?),
        }
        Ok(true)
    }

    /// Moves slots of a tier out of their groups, and evicts clean copies there.
    async fn slots(
        &mut self,
        (layer, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        busy: ChunkLock,
        class: Class,
    ) -> Result<bool, IoError> {
        let shard = self.shard;
        let _room = shard.journal_room(Work::Mover).await?;
        let (copies, blocks) = self.here(&map_page.page.borrow(), class);
        let (copied, count) = (copies.count(), blocks.len());
        self.slots = self.slots.saturating_sub((copied + count) as u64);
        shard.note_evicted(Cause::EvictedSpared, (layer, chunk), &copies);
        shard.apply_evict(layer, chunk, map_page, copies)?;
        let mut runs = Vec::new();
        if count == 0 || !shard.try_slots(class, count, &mut runs) {
            return Ok(copied > 0);
        }
        let target = Target::Slots(runs);
        let mut job = Job::new(shard, (layer, chunk), map_page, busy, blocks, target);
        let copied = shard.copy_down(&mut job, Purpose::Upkeep).await;
        if copied.is_err() || job.blocks.is_empty() {
            shard.drop_target(&job);
            copied?;
        } else {
            shard.settle_demotion(&job, Descent::SPARED)?;
        }
        Ok(true)
    }

    /// Slots of a tier to move out of their groups: clean copies, and blocks that are nowhere else.
    fn here(&self, page: &ChunkPage, class: Class) -> (BlockMask, Vec<Moving>) {
        let state = self.shard.state.borrow();
        let (mut copies, mut blocks) = (BlockMask::default(), Vec::new());
        for block in 0..CHUNK_BLOCKS {
            let slot = page.slot(block);
            if !state.alloc.is_leaving(slot) || self.shard.class(slot) != class {
                continue;
            }
            match page.state(block) {
                BlockState::Clean => copies.set(block),
                _ => blocks.push(Moving::of(page, block)),
            }
        }
        (copies, blocks)
    }
}
