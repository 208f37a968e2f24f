//! Groups of slots that can be emptied into the shard's others.

use super::{Allocator, Class, GroupKey};
use units::Place;

impl Allocator {
    /// Closes groups of slots of a class whose slots in use the shard's other groups can take: those
    /// with least, up to `most`, counting those that are empty already. They give no slot until
    /// [`Allocator::reopen`]. Returns how many slots are to leave them.
    pub fn close_sparse(&mut self, class: Class, most: usize) -> u64 {
        let usable = |key: &GroupKey| {
            self.class(key.vdrive()) == Some(class) && self.table.is_open(key.vdrive())
        };
        let partly = self
            .slots
            .iter()
            .filter(|(key, group)| u64::from(group.used) < self.group_blocks && usable(key));
        let mut partly: Vec<_> = partly.map(|(key, group)| (group.used, *key)).collect();
        partly.sort_unstable();
        let free = |used: u32| self.group_blocks - u64::from(used);
        let mut room: u64 = partly.iter().map(|(used, _)| free(*used)).sum();
        let mut leaving = 0;
        for (used, key) in partly.into_iter().take(most) {
            room -= free(used);
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

    /// Whether a slot lies in a group that is closed.
    pub fn is_leaving(&self, place: Place) -> bool {
        !self.closed.is_empty()
            && place.is_some()
            && self
                .key(place)
                .is_some_and(|(key, _)| self.closed.contains(&key))
    }

    /// Closed groups give slots again.
    pub fn reopen(&mut self) {
        self.closed.clear();
    }
}
