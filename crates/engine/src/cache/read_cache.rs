//! The RAM cache: extents of the slow tier, on probation for the fast one. Replacement is CLOCK; the hand skips what policies
//! guarantee to volumes (`cache/guarantees.rs`).

use super::guarantees::Guarantees;
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
    /// The volume by whose settings it goes; 0: by none.
    pub owner: u32,
    /// Extent of the chunk.
    pub extent: usize,
    /// 64 KiB.
    pub data: DmaBuf,
    /// Blocks that are present and valid.
    pub valid: u16,
    /// Blocks that hosts have requested since the fill.
    pub touched: u16,
    /// Used since the clock's hand last passed.
    pub referenced: bool,
    /// Rounds of the hand that it survives without being used.
    pub rounds: u8,
    /// Filled by read-ahead, since misses were dense there.
    pub dense: bool,
    /// Filled without a request by a host.
    pub ahead: bool,
    /// No host has requested it since the fill. Not set for predicted extents.
    pub fresh: bool,
    /// It was predicted, and no host has requested it since.
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

/// What a host's use of an extent shows.
pub enum Touch {
    /// The first use since the fill, by read-ahead (`ahead`) or on request. `before`: those that were fresh until then.
    First { ahead: bool, before: Fresh },
    /// The extent was being filled without a request.
    InTime,
    /// The first use of a predicted extent.
    Predicted,
    /// Nothing new: it had been requested before.
    Again,
}

/// A bounded set of extents; evicted by a clock (an approximation of LRU).
pub struct RamTier {
    slots: Vec<Option<RamExtent>>,
    free: Vec<u32>,
    limit: usize,
    hand: usize,
    fresh: Fresh,
    guarantees: Guarantees,
    /// Separate from the loop's, whose registered memory is for requests in flight.
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
            guarantees: Guarantees::default(),
            memory: DmaPool::new(),
        }
    }

    /// Capacity in bytes.
    pub fn limit_bytes(&self) -> u64 {
        (self.limit * EXTENT) as u64
    }

    /// Changes the capacity (bytes), and evicts up to `most` extents of the excess. True if
    /// more is to be evicted.
    pub fn fit(&mut self, bytes: u64, most: usize) -> bool {
        self.limit = (bytes / EXTENT as u64) as usize;
        self.guarantees.fit(self.limit);
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

    /// Guarantees parts of the tier to volumes: numbers and millionths, in any order. `owner_of`: the volume by whose settings a
    /// layer goes. If they changed, all extents are counted again, in one pass.
    pub fn guarantee(&mut self, parts: Vec<(u32, u32)>, owner_of: impl Fn(u32) -> Option<u32>) {
        if !self.guarantees.set(parts, self.limit) {
            return;
        }
        for extent in self.slots.iter_mut().flatten() {
            extent.owner = owner_of(extent.chunk.0).unwrap_or(0);
            self.guarantees.came(extent.owner);
        }
    }

    fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Memory for an extent, with undefined content.
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

    /// Inserts an extent. Returns the evicted one, if any: without capacity, the extent itself.
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
        self.guarantees.came(extent.owner);
        self.slots[slot as usize] = Some(extent);
        left
    }

    fn fresh_of(&mut self, ahead: bool) -> &mut usize {
        match ahead {
            true => &mut self.fresh.ahead,
            false => &mut self.fresh.asked,
        }
    }

    /// A host requests a block. `waited`: since before the fill.
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
                // From now on it counts as requested.
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
        self.guarantees.left(taken.owner);
        Some(taken)
    }

    /// The extent that the hand reaches in a number of steps, if it would evict it in the present state.
    pub fn leaves_in(&self, steps: usize) -> Option<Extent> {
        let at = (self.hand + steps) % self.slots.len().max(1);
        let extent = self.slots.get(at)?.as_ref()?;
        let leaves = !extent.referenced && extent.rounds == 0;
        (leaves && !self.guarantees.keep(extent.owner)).then(|| extent.name())
    }

    fn evict(&mut self) -> Option<(u32, RamExtent)> {
        // One for used extents, one for those that survive another round, and one for the eviction.
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
            if self.guarantees.keep(extent.owner) {
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

    /// Drops everything, extent by extent, and passes each to `left`.
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
