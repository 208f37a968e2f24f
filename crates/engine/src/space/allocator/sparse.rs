//! Groups that can be emptied into the shard's others.

use super::{Allocator, Class, GroupKey};
use units::{CHUNK_BLOCKS, Place};

impl Allocator {
    /// Homes of a group.
    pub fn group_homes(&self) -> u32 {
        (self.group_blocks / CHUNK_BLOCKS as u64) as u32
    }

    /// Blocks of homes that are in use (or kept back).
    pub fn home_blocks(&self) -> u64 {
        let homes = self.homes.values();
        let used = homes.map(|group| u64::from(group.bits.count_ones()));
        used.sum::<u64>() * CHUNK_BLOCKS as u64
    }

    /// Closes groups of slots of a class whose slots in use the shard's other groups can take: those
    /// with least, up to `most`, counting those that are empty already. They give no slot until
    /// [`Allocator::reopen`]. Returns how many slots are to leave them.
    pub fn close_slots(&mut self, class: Class, most: usize) -> u64 {
        let groups = self.slots.iter();
        let groups = groups.filter(|(key, _)| self.class(key.vdrive()) == Some(class));
        let used = groups.map(|(key, group)| (group.used, key)).collect();
        self.close(used, self.group_blocks as u32, most)
    }

    /// The same for groups of homes. Returns how many homes are to leave them.
    pub fn close_homes(&mut self, most: usize) -> u64 {
        let groups = self.homes.iter();
        let used = groups.map(|(key, group)| (group.bits.count_ones(), *key));
        self.close(used.collect(), self.group_homes(), most)
    }

    /// For groups with a number of used blocks of `size` each.
    fn close(&mut self, used: Vec<(u32, GroupKey)>, size: u32, most: usize) -> u64 {
        let mut partly = used;
        partly.retain(|(used, key)| *used < size && self.table.is_open(key.vdrive()));
        partly.sort_unstable();
        let mut room: u64 = partly.iter().map(|(used, _)| u64::from(size - used)).sum();
        let mut leaving = 0;
        for (used, key) in partly.into_iter().take(most) {
            room -= u64::from(size - used);
            if leaving + u64::from(used) > room {
                break;
            }
            leaving += u64::from(used);
            if used > 0 {
                self.closed.insert(key);
            }
        }
        for cursor in &mut self.cursors {
            cursor.group = cursor.group.filter(|key| !self.closed.contains(key));
        }
        leaving
    }

    /// Whether any group of the shard has nothing; none of them is kept to be filled next.
    pub fn release_empty_groups(&mut self) -> bool {
        let slots = &self.slots;
        let is_empty = |key: &GroupKey| slots.get(*key).is_some_and(|group| group.used == 0);
        for cursor in &mut self.cursors[Class::Fast as usize..] {
            cursor.group = cursor.group.filter(|key| !is_empty(key));
        }
        let is_meta = |key: &GroupKey| self.class(key.vdrive()) == Some(Class::Meta);
        slots
            .iter()
            .any(|(key, group)| group.used == 0 && !is_meta(&key))
            || self.homes.values().any(|group| group.bits == 0)
    }

    /// Whether a slot or home is in a group that is closed.
    pub fn is_leaving(&self, place: Place) -> bool {
        !self.closed.is_empty()
            && place.is_some()
            && self
                .key(place)
                .is_some_and(|(key, _)| self.closed.contains(&key))
    }

    /// Closed groups give space again.
    pub fn reopen(&mut self) {
        self.closed.clear();
    }
}
