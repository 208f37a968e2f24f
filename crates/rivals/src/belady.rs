//! MIN: the entry whose next use is farthest leaves, or does not come in at all. No policy has more
//! hits, and none that does not know the future can do as well; it is the bound that the others are
//! measured by.
//!
//! L. A. Belady: "A Study of Replacement Algorithms for a Virtual-Storage Computer", IBM Systems
//! Journal 5(2), 1966. No parameters. Belady's has to take in every page that is used; a cache need
//! not, so here the new entry is one of those that may leave.

use crate::{Cache, Outcome};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BinaryHeap;

/// A next use that does not come.
const NEVER: u32 = u32::MAX;

/// Belady's optimum, for one sequence of uses.
pub struct Belady {
    capacity: usize,
    /// Each use: its key, and the number of the next use of the same key.
    uses: Vec<(u64, u32)>,
    /// The number of the use that comes now.
    now: usize,
    entries: FxHashSet<u64>,
    /// By next use, of each entry and, until they are swept, of uses past. Those are before every
    /// one to come, so the greatest is of an entry.
    next_uses: BinaryHeap<(u32, u64)>,
}

impl Belady {
    /// An empty cache of so many entries that is going to be told exactly these uses, in this
    /// order.
    ///
    /// # Panics
    /// For 2^32 - 1 uses and more.
    pub fn new(capacity: usize, uses: &[u64]) -> Self {
        assert!(
            uses.len() < NEVER as usize,
            "{} uses are too many",
            uses.len()
        );
        let mut uses: Vec<_> = uses.iter().map(|key| (*key, NEVER)).collect();
        let mut next = FxHashMap::default();
        for (number, (key, next_use)) in uses.iter_mut().enumerate().rev() {
            *next_use = next.insert(*key, number as u32).unwrap_or(NEVER);
        }
        Self {
            capacity,
            uses,
            now: 0,
            entries: FxHashSet::default(),
            next_uses: BinaryHeap::new(),
        }
    }

    fn expect_next(&mut self, next_use: u32, key: u64) {
        if self.next_uses.len() > 2 * self.capacity {
            let now = self.now as u32;
            self.next_uses.retain(|(next_use, _)| *next_use >= now);
        }
        self.next_uses.push((next_use, key));
    }
}

impl Cache for Belady {
    /// # Panics
    /// If this is not the use whose turn it is.
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        let Some((expected, next_use)) = self.uses.get(self.now).copied() else {
            panic!("key {key} is used after the last use that was announced");
        };
        assert_eq!(
            key, expected,
            "use {} is of another key than announced",
            self.now
        );
        self.now += 1;
        if self.entries.contains(&key) {
            self.expect_next(next_use, key);
            return Outcome::Hit;
        }
        if self.entries.len() == self.capacity {
            // With equal next uses, that is, none, the new one stays out: as many hits for fewer
            // writes.
            let Some((_, farthest)) = self.next_uses.peek().filter(|(last, _)| *last > next_use)
            else {
                return Outcome::Bypassed;
            };
            self.entries.remove(farthest);
            gone.push(*farthest);
            self.next_uses.pop();
        }
        self.entries.insert(key);
        self.expect_next(next_use, key);
        Outcome::Admitted
    }

    fn contains(&self, key: u64) -> bool {
        self.entries.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(capacity: usize, uses: &[u64]) -> usize {
        let mut cache = Belady::new(capacity, uses);
        let mut gone = Vec::new();
        let outcomes = uses.iter().map(|key| cache.access(*key, &mut gone));
        outcomes.filter(|outcome| *outcome == Outcome::Hit).count()
    }

    /// The most hits of all ways to keep, at each use, any of the entries and of the new one.
    fn most_hits(capacity: usize, uses: &[u64], entries: &[u64]) -> usize {
        let Some((key, rest)) = uses.split_first() else {
            return 0;
        };
        if entries.contains(key) {
            return 1 + most_hits(capacity, rest, entries);
        }
        let bypassed = most_hits(capacity, rest, entries);
        let mut with = entries.to_vec();
        with.push(*key);
        if with.len() <= capacity {
            return bypassed.max(most_hits(capacity, rest, &with));
        }
        let evicted = (0..entries.len()).map(|victim| {
            let mut kept = with.clone();
            kept.remove(victim);
            most_hits(capacity, rest, &kept)
        });
        evicted.fold(bypassed, usize::max)
    }

    #[test]
    fn no_choice_whatever_has_more_hits_in_any_sequence_of_eight_uses_of_four_keys() {
        for number in 0..4_u64.pow(8) {
            let uses: Vec<u64> = (0..8).map(|digit| number >> (2 * digit) & 3).collect();
            for capacity in 0..=3 {
                let most = most_hits(capacity, &uses, &[]);
                assert_eq!(hits(capacity, &uses), most, "{uses:?} in {capacity}");
            }
        }
    }

    #[test]
    fn the_reference_string_of_the_textbooks_hits_once_more_than_where_every_page_comes_in() {
        // Nine faults in three frames: Silberschatz, Galvin, Gagne, "Operating System Concepts". To
        // stay out saves one, where 4 would evict what is used before it.
        let uses = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        assert_eq!(hits(3, &uses), 20 - 9 + 1);
    }

    #[test]
    fn what_is_used_sooner_than_any_entry_evicts_the_farthest() {
        let uses = [1, 2, 3, 3, 2, 1];
        let mut cache = Belady::new(2, &uses);
        let mut gone = Vec::new();
        for key in uses {
            cache.access(key, &mut gone);
        }
        assert_eq!(gone, [1]);
    }

    #[test]
    fn uses_past_are_swept() {
        let uses = vec![1; 10_000];
        let mut cache = Belady::new(4, &uses);
        for key in uses {
            cache.access(key, &mut Vec::new());
        }
        assert!(cache.next_uses.len() <= 10);
    }

    #[test]
    #[should_panic(expected = "another key than announced")]
    fn another_order_than_announced_is_refused() {
        Belady::new(2, &[1, 2]).access(2, &mut Vec::new());
    }
}
