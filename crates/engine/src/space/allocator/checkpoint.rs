//! Checkpoints of a shard's space: loading groups from its trees, and writing them.

use super::{Allocator, HomeGroup, SlotGroup, WORDS, set_bits};
use crate::space::DeferredFrees;
use format::{GroupKey, HOME_GROUPS, PagePtr};
use std::collections::BTreeMap;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, Place};

/// See [`Allocator::holes`].
#[derive(Default)]
pub struct Holes {
    slots: BTreeMap<GroupKey, Vec<(u32, u32)>>,
    homes: BTreeMap<GroupKey, Vec<u32>>,
}

/// A page pointer to nothing, for groups that left a tree.
pub const NO_PAGE: PagePtr = PagePtr {
    place: Place::NONE,
    crc: 0,
    hint: 0,
};

impl Allocator {
    /// A group loaded from the shard's trees. False when another shard has it.
    pub fn load_slots(&mut self, key: GroupKey, bits: [u64; WORDS]) -> bool {
        let Some(class) = self.class(key.vdrive()) else {
            return false;
        };
        if !self.table.claim(key.vdrive(), key.group()) {
            return false;
        }
        let used: u32 = bits.iter().map(|word| word.count_ones()).sum();
        self.free[class as usize] += self.group_blocks - u64::from(used);
        self.insert_slots(
            key,
            SlotGroup {
                bits: Box::new(bits),
                used,
                dirty: false,
                touched: 0,
            },
        );
        true
    }

    /// Groups loaded from a page of homes. False when another shard has one.
    pub fn load_homes(&mut self, page: u32, groups: &[Option<u64>; HOME_GROUPS]) -> bool {
        for (index, bits) in groups.iter().enumerate() {
            let Some(bits) = bits else { continue };
            let key = GroupKey(page * HOME_GROUPS as u32 + index as u32);
            if !self.table.claim(key.vdrive(), key.group()) {
                return false;
            }
            self.homes.insert(
                key,
                HomeGroup {
                    bits: *bits,
                    touched: 0,
                },
            );
        }
        true
    }

    /// A checkpoint begins: groups that have been empty since before the last one are dropped
    /// from the trees. They are the table's again once the checkpoint is valid.
    pub fn begin_checkpoint(&mut self, generation: u64) -> (Vec<GroupKey>, Vec<GroupKey>) {
        self.checkpoint = generation;
        let cursors: Vec<_> = self
            .cursors
            .iter()
            .filter_map(|cursor| cursor.group)
            .collect();
        let old = |touched: u64| touched + 1 < generation;
        let slots: Vec<_> = self
            .slots
            .iter()
            .filter(|(key, group)| {
                let wanted = cursors.contains(key) && self.table.is_open(key.vdrive());
                group.used == 0 && old(group.touched) && !wanted
            })
            .map(|(key, _)| key)
            .collect();
        let homes: Vec<_> = self
            .homes
            .iter()
            .filter(|(_, group)| group.bits == 0 && old(group.touched))
            .map(|(key, _)| *key)
            .collect();
        for key in &slots {
            self.remove_slots(*key);
            self.dirty_slots.remove(key);
            self.closed.remove(key);
            let class = self.class(key.vdrive()).expect("a group of the pool");
            self.free[class as usize] -= self.group_blocks;
            for cursor in &mut self.cursors {
                cursor.group = cursor.group.filter(|group| group != key);
            }
        }
        for key in &homes {
            self.homes.remove(key);
            self.closed.remove(key);
            self.dirty_homes.insert(key.homes_page());
            self.home_cursor = self.home_cursor.filter(|group| group != key);
        }
        (slots, homes)
    }

    /// The dropped groups are free for every shard: the checkpoint is valid.
    pub fn give_groups(&self, groups: &[GroupKey]) {
        groups
            .iter()
            .for_each(|key| self.table.give(key.vdrive(), key.group()));
    }

    /// Pages of homes that changed; they count as written from here on.
    pub fn take_dirty_homes(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.dirty_homes).into_iter().collect()
    }

    /// Slot groups that changed since they were last encoded.
    pub fn dirty_slots(&self) -> Vec<GroupKey> {
        self.dirty_slots.iter().copied().collect()
    }

    /// The groups of a page of homes as a checkpoint keeps them: without what is kept back or
    /// not recorded. `None` when the shard owns none of them.
    pub fn homes_for_checkpoint(
        &self,
        page: u32,
        holes: &Holes,
    ) -> Option<[Option<u64>; HOME_GROUPS]> {
        let mut groups = [None; HOME_GROUPS];
        for (index, group) in groups.iter_mut().enumerate() {
            let key = GroupKey(page * HOME_GROUPS as u32 + index as u32);
            *group = self.homes.get(&key).map(|owned| {
                let holes = holes.homes.get(&key).map_or(&[][..], Vec::as_slice);
                holes
                    .iter()
                    .fold(owned.bits, |bits, bit| bits & !(1 << bit))
            });
        }
        groups.iter().any(Option::is_some).then_some(groups)
    }

    /// A slot group's bits as a checkpoint keeps them; it counts as written from here on.
    pub fn slots_for_checkpoint(&mut self, key: GroupKey, holes: &Holes) -> [u64; WORDS] {
        let group = self.slots.get_mut(key).expect("a group of the shard");
        group.dirty = false;
        self.encoded += 1;
        self.dirty_slots.remove(&key);
        let mut bits = *group.bits;
        for (bit, count) in holes.slots.get(&key).map_or(&[][..], Vec::as_slice) {
            set_bits(&mut bits, *bit, *count, false);
        }
        bits
    }

    /// Space marked as used that is not yet, or no longer, part of a checkpoint:
    /// space kept back, space handed out without a record, and `freed` metadata pages.
    pub fn holes(&self, deferred_frees: &DeferredFrees, freed: &[Place]) -> Holes {
        let mut holes = Holes::default();
        let kept = deferred_frees.batches();
        let slots = kept.flat_map(|batch| batch.slots.iter().copied());
        let pending = self
            .pending
            .iter()
            .map(|(place, pending)| (*place, pending.count));
        let pending = pending.filter(|_| !is_on(Mutation::PendingKept));
        let freed = freed.iter().map(|place| (*place, 1));
        for (place, count) in slots.chain(pending.clone()).chain(freed) {
            for piece in self.pieces(place, count) {
                let group = holes.slots.entry(piece.key).or_default();
                group.push((piece.bit, piece.count));
            }
        }
        let homes = deferred_frees
            .batches()
            .flat_map(|batch| batch.homes.iter().copied());
        let pending_homes = pending
            .filter(|(_, count)| *count == 0)
            .map(|(place, _)| place);
        for place in homes.chain(pending_homes) {
            if let Some((key, block)) = self.key(place) {
                holes
                    .homes
                    .entry(key)
                    .or_default()
                    .push(block / CHUNK_BLOCKS as u32);
            }
        }
        holes
    }
}
