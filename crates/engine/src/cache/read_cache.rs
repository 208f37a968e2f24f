//! The RAM tier: extents fetched from the slow tier, on probation for the fast one.

use crate::map::page::MapPage;
use crate::tiering::access_stats::extent_of;
use block::{DmaBuf, DmaPool};
use placement::{Extent, Fresh};
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, EXTENT, EXTENT_BLOCKS};

/// One extent in RAM.
pub struct RamExtent {
    /// Its chunk's page.
    pub map_page: Rc<MapPage>,
    /// Volume and chunk.
    pub chunk: (u32, u32),
    /// Extent of the chunk.
    pub extent: usize,
    /// 64 KiB.
    pub data: DmaBuf,
    /// Blocks that hold the present content.
    pub valid: u16,
    /// Blocks that some host has asked for since they came.
    pub touched: u16,
    /// Used since the hand last passed.
    pub referenced: bool,
    /// Rounds of the hand that it stays though it was not used in them.
    pub rounds: u8,
    /// Came with others around it, as misses were dense there.
    pub dense: bool,
    /// Came though no host had asked for it.
    pub ahead: bool,
    /// No host has asked for it since it came. Not told of what was predicted.
    pub fresh: bool,
    /// It was predicted, and no host has asked for it since.
    pub predicted: bool,
}

impl RamExtent {
    /// The extent, as the policy names it.
    pub fn name(&self) -> Extent {
        extent_of(self.chunk, self.extent)
    }

    /// A block's bytes, if they are present.
    pub fn block(&self, block: usize) -> Option<&[u8]> {
        (self.valid >> block & 1 == 1).then(|| &self.data[block * BLOCK..][..BLOCK])
    }
}

/// What a host's use of an extent tells.
pub enum Touch {
    /// It is the first one since the extent came, `ahead` or asked for. `before`: those that were fresh until then.
    First { ahead: bool, before: Fresh },
    /// The extent had been on its way, though nobody had asked for it then.
    InTime,
    /// It is the first one since the extent came, which was predicted.
    Predicted,
    /// Nothing: it had been asked for before.
    Again,
}

/// A bounded set of extents; the one that was not used for longest (by a clock hand) makes room.
pub struct RamTier {
    slots: Vec<Option<RamExtent>>,
    free: Vec<u32>,
    limit: usize,
    hand: usize,
    fresh: Fresh,
    /// Apart from the loop's, whose registered memory is for what is in flight.
    memory: DmaPool,
}

impl RamTier {
    /// A tier of at most `bytes`.
    pub fn new(bytes: u64) -> Self {
        let limit = (bytes / EXTENT as u64) as usize;
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit,
            hand: 0,
            fresh: Fresh::default(),
            memory: DmaPool::new(),
        }
    }

    /// Bytes that it may hold.
    pub fn limit_bytes(&self) -> u64 {
        (self.limit * EXTENT) as u64
    }

    /// It may hold so many bytes from now on, and gives up some of what is more, `most` extents at a time. True when
    /// there is more to give up.
    pub fn fit(&mut self, bytes: u64, most: usize) -> bool {
        self.limit = (bytes / EXTENT as u64) as usize;
        for _ in 0..most {
            if self.used() <= self.limit {
                return false;
            }
            let Some((slot, _)) = self.evict() else {
                return false;
            };
            self.free.push(slot);
        }
        self.used() > self.limit
    }

    fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Memory for an extent; its content is whatever was there before.
    pub fn buffer(&self) -> DmaBuf {
        self.memory.get(EXTENT)
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        (self.used() * EXTENT) as u64
    }

    /// An extent.
    pub fn get(&self, slot: u32) -> Option<&RamExtent> {
        self.slots.get(slot as usize).and_then(Option::as_ref)
    }

    /// An extent, to change.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut RamExtent> {
        self.slots.get_mut(slot as usize).and_then(Option::as_mut)
    }

    /// Takes an extent in. Returns the one that made room, if one had to: of a tier that has none, itself.
    pub fn insert(&mut self, extent: RamExtent) -> Option<RamExtent> {
        let has_room = self.used() < self.limit;
        let (slot, left) = match has_room.then(|| self.free.pop()) {
            Some(Some(slot)) => (slot, None),
            Some(None) => {
                self.slots.push(None);
                (self.slots.len() as u32 - 1, None)
            }
            None if self.limit == 0 => return Some(extent),
            None => match self.evict() {
                Some((slot, left)) => (slot, Some(left)),
                None => return Some(extent),
            },
        };
        extent.map_page.ram[extent.extent].set(slot + 1);
        if extent.fresh {
            *self.fresh_of(extent.ahead) += 1;
        }
        self.slots[slot as usize] = Some(extent);
        left
    }

    fn fresh_of(&mut self, ahead: bool) -> &mut usize {
        match ahead {
            true => &mut self.fresh.ahead,
            false => &mut self.fresh.asked,
        }
    }

    /// A host asks for a block. `waited`: since before it came.
    pub fn touch(&mut self, slot: u32, block: usize, waited: bool) -> Touch {
        let Some(extent) = self.get_mut(slot) else {
            return Touch::Again;
        };
        extent.touched |= 1 << block;
        extent.referenced = true;
        if std::mem::take(&mut extent.predicted) {
            return Touch::Predicted;
        }
        let ahead = extent.ahead;
        match (extent.fresh, waited, ahead) {
            (false, ..) | (true, true, false) => Touch::Again,
            (true, true, true) => {
                // From now on it is as if it had been asked for.
                extent.ahead = false;
                *self.fresh_of(true) -= 1;
                *self.fresh_of(false) += 1;
                Touch::InTime
            }
            (true, false, _) => {
                extent.fresh = false;
                let before = self.fresh;
                *self.fresh_of(ahead) -= 1;
                Touch::First { ahead, before }
            }
        }
    }

    fn take(&mut self, slot: usize) -> Option<RamExtent> {
        let taken = self.slots[slot].take()?;
        if taken.fresh {
            *self.fresh_of(taken.ahead) -= 1;
        }
        Some(taken)
    }

    /// The extent that the hand comes to in so many steps, if it would take that out as things are.
    pub fn leaves_in(&self, steps: usize) -> Option<Extent> {
        let at = (self.hand + steps) % self.slots.len().max(1);
        let extent = self.slots.get(at)?.as_ref()?;
        (!extent.referenced && extent.rounds == 0).then(|| extent.name())
    }

    fn evict(&mut self) -> Option<(u32, RamExtent)> {
        // One for what was used, one for what stays for another round, and one in which it leaves.
        for _ in 0..3 * self.slots.len() {
            let at = self.hand;
            self.hand = (at + 1) % self.slots.len();
            let Some(extent) = &mut self.slots[at] else {
                continue;
            };
            if std::mem::take(&mut extent.referenced) {
                continue;
            }
            if extent.rounds > 0 {
                extent.rounds -= 1;
                continue;
            }
            let left = self.take(at)?;
            left.map_page.ram[left.extent].set(0);
            return Some((at as u32, left));
        }
        None
    }

    /// Forgets an extent whose map page does not name it any longer.
    pub fn drop_slot(&mut self, slot: u32) {
        if self.take(slot as usize).is_some() {
            self.free.push(slot);
        }
    }

    /// Forgets a block: it was written or discarded.
    pub fn invalidate(&mut self, map_page: &MapPage, block: usize) {
        if is_on(Mutation::RamStale) {
            return;
        }
        let cell = &map_page.ram[block / EXTENT_BLOCKS];
        let Some(slot) = cell.get().checked_sub(1) else {
            return;
        };
        let Some(extent) = self.get_mut(slot) else {
            return;
        };
        extent.valid &= !(1 << (block % EXTENT_BLOCKS));
        if extent.valid == 0 {
            cell.set(0);
            self.drop_slot(slot);
        }
    }

    /// Forgets everything, one extent after the other, of which `left` is told.
    pub fn clear(&mut self, mut left: impl FnMut(&RamExtent)) {
        for slot in 0..self.slots.len() {
            if let Some(extent) = &self.slots[slot] {
                left(extent);
                extent.map_page.ram[extent.extent].set(0);
                self.drop_slot(slot as u32);
            }
        }
    }
}
