//! LRU: the least recently used entry leaves.
//!
//! R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger: "Evaluation Techniques for Storage
//! Hierarchies", IBM Systems Journal 9(2), 1970. No parameters.

use crate::list::Lists;
use crate::{Cache, Outcome};

const ENTRIES: usize = 0;

/// Least recently used.
pub struct Lru {
    capacity: usize,
    entries: Lists<1>,
}

impl Lru {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Lists::new(),
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len(ENTRIES)
    }

    /// Uses an entry if it is there; whether it is.
    pub(crate) fn hit(&mut self, key: u64) -> bool {
        let found = self.entries.find(key);
        if let Some(at) = found {
            self.entries.move_to(at, ENTRIES);
        }
        found.is_some()
    }

    /// Takes in a key that is not there.
    pub(crate) fn admit(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        if self.len() == self.capacity {
            gone.extend(self.entries.pop(ENTRIES));
        }
        self.entries.push(ENTRIES, key);
        Outcome::Admitted
    }
}

impl Cache for Lru {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.hit(key) {
            return Outcome::Hit;
        }
        self.admit(key, gone)
    }

    fn contains(&self, key: u64) -> bool {
        self.entries.find(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_string_of_the_textbooks_faults_twelve_times_in_three_frames() {
        // Silberschatz, Galvin, Gagne: "Operating System Concepts", page replacement.
        let uses = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        let mut cache = Lru::new(3);
        let mut gone = Vec::new();
        let outcomes = uses.map(|key| cache.access(key, &mut gone));
        let faults = outcomes
            .iter()
            .filter(|outcome| **outcome == Outcome::Admitted);
        assert_eq!(faults.count(), 12);
        assert_eq!(gone, [7, 1, 2, 3, 0, 4, 0, 3, 2]);
    }

    #[test]
    fn a_scan_flushes_it() {
        let mut cache = Lru::new(10);
        let mut gone = Vec::new();
        for _ in 0..20 {
            cache.access(1, &mut gone);
        }
        for key in 100..110 {
            cache.access(key, &mut gone);
        }
        assert_eq!(gone, [1]);
    }
}
