//! 2Q: new entries pass through a short queue, and only those used again after they left it come
//! into the main LRU list.
//!
//! T. Johnson, D. Shasha: "2Q: A Low Overhead High Performance Buffer Management Replacement
//! Algorithm", VLDB 1994, the full version. Parameters, those that the paper recommends: Kin, the
//! length of the queue from which on it evicts entries, is 25 % of the capacity, and Kout, how
//! many keys that left it are remembered, 50 %.

use crate::list::Lists;
use crate::{Cache, Outcome};

/// The paper's A1in: new entries, first in first out.
const NEW: usize = 0;
/// The paper's A1out: keys remembered that left `NEW`.
const NEW_GONE: usize = 1;
/// The paper's Am: entries that proved worth it, least recently used out.
const MAIN: usize = 2;

/// 2Q, full version.
pub struct TwoQ {
    capacity: usize,
    new_max: usize,
    remembered_max: usize,
    lists: Lists<3>,
}

impl TwoQ {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            new_max: (capacity / 4).max(1),
            remembered_max: (capacity / 2).max(1),
            lists: Lists::new(),
        }
    }

    fn make_room(&mut self, gone: &mut Vec<u64>) {
        let (new, main) = (self.lists.len(NEW), self.lists.len(MAIN));
        if new + main < self.capacity {
            return;
        }
        // In a cache of one entry there may be nothing but the queue, though it is not over its
        // length.
        if new <= self.new_max && main > 0 {
            gone.extend(self.lists.pop(MAIN));
        } else if let Some(at) = self.lists.oldest(NEW) {
            gone.push(self.lists.key(at));
            self.lists.move_to(at, NEW_GONE);
            if self.lists.len(NEW_GONE) > self.remembered_max {
                self.lists.pop(NEW_GONE);
            }
        }
    }
}

impl Cache for TwoQ {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        let Some(at) = self.lists.find(key) else {
            self.make_room(gone);
            self.lists.push(NEW, key);
            return Outcome::Admitted;
        };
        match self.lists.list(at) {
            // Uses directly after the first are correlated: the entry keeps its place.
            NEW => Outcome::Hit,
            MAIN => {
                self.lists.move_to(at, MAIN);
                Outcome::Hit
            }
            _ => {
                // Taken out first, for making room may forget it.
                self.lists.remove(at);
                self.make_room(gone);
                self.lists.push(MAIN, key);
                Outcome::Admitted
            }
        }
    }

    fn contains(&self, key: u64) -> bool {
        matches!(self.lists.list_with(key), Some(NEW | MAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cache: &mut TwoQ, keys: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut gone = Vec::new();
        for key in keys {
            cache.access(key, &mut gone);
        }
        gone
    }

    #[test]
    fn a_use_soon_after_the_first_does_not_save_an_entry() {
        let mut cache = TwoQ::new(8);
        assert_eq!(run(&mut cache, (0..8).chain([0, 0, 0, 8])), [0]);
    }

    #[test]
    fn a_use_after_it_left_brings_it_into_the_main_list() {
        let mut cache = TwoQ::new(8);
        run(&mut cache, (0..9).chain([0]));
        assert_eq!(cache.lists.list_with(0), Some(MAIN));
        run(&mut cache, 100..1_000);
        assert!(cache.contains(0));
    }

    #[test]
    fn a_key_is_forgotten_when_half_the_capacity_of_others_left_after_it() {
        let mut cache = TwoQ::new(8);
        run(&mut cache, (0..8 + 5).chain([0]));
        assert_eq!(cache.lists.list_with(0), Some(NEW));
    }
}
