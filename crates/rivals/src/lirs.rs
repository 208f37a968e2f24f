//! LIRS: entries are ranked by the distance between their last two uses, not by how long ago the
//! last was.
//!
//! S. Jiang, X. Zhang: "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to
//! Improve Buffer Cache Performance", ACM SIGMETRICS 2002. Parameters: 1 % of the capacity, at
//! least one entry, is for keys of high distance, as in the paper. The keys remembered that left
//! are at most twice the capacity; the paper has no bound of its own for them.

use crate::list::Lists;
use crate::{Cache, Outcome};

/// The paper's stack S, of keys by their last use. Its oldest is always an entry of low distance.
const STACK: usize = 0;
/// The paper's list Q, of the entries of high distance.
const HIGH: usize = 0;
/// Keys remembered that left `HIGH` while they were in the stack.
const GHOST: usize = 1;

/// Low inter-reference recency set.
pub struct Lirs {
    capacity: usize,
    high_max: usize,
    ghosts_max: usize,
    /// Entries of low distance: in the stack and in none of `others`.
    low: usize,
    stack: Lists<1>,
    /// Keys of high distance. Their order here is the one that those of them in the stack have
    /// there: a key enters both together, and a use of one in both takes it out of here. So the
    /// first ghost is the lowest.
    others: Lists<2>,
}

impl Lirs {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            high_max: (capacity / 100).max(1),
            ghosts_max: 2 * capacity,
            low: 0,
            stack: Lists::new(),
            others: Lists::new(),
        }
    }

    fn low_max(&self) -> usize {
        self.capacity - self.high_max
    }

    /// Makes a key the newest of the stack.
    fn stack_up(&mut self, key: u64) {
        match self.stack.find(key) {
            Some(at) => self.stack.move_to(at, STACK),
            None => self.stack.push(STACK, key),
        }
    }

    /// A key that was used while in the stack has a low distance now; the oldest of those no
    /// longer.
    fn promote(&mut self, key: u64) {
        if let Some(at) = self.others.find(key) {
            self.others.remove(at);
        }
        self.stack_up(key);
        self.low += 1;
        if self.low > self.low_max() {
            // Where none may have a low distance, keys of a high one lie below this one.
            self.prune();
            let oldest = self.stack.pop(STACK).expect("one of low distance");
            self.others.push(HIGH, oldest);
            self.low -= 1;
            self.prune();
        }
    }

    /// Drops from the stack's end what cannot come to have a lower distance than any entry that has
    /// one.
    fn prune(&mut self) {
        while let Some(at) = self.stack.oldest(STACK) {
            let Some(other) = self.others.find(self.stack.key(at)) else {
                return;
            };
            self.stack.remove(at);
            if self.others.list(other) == GHOST {
                self.others.remove(other);
            }
        }
    }

    fn evict(&mut self, gone: &mut Vec<u64>) {
        let Some(at) = self.others.oldest(HIGH) else {
            return;
        };
        let key = self.others.key(at);
        gone.push(key);
        if self.stack.find(key).is_some() {
            self.others.move_to(at, GHOST);
        } else {
            self.others.remove(at);
        }
    }

    fn bound_ghosts(&mut self) {
        if self.others.len(GHOST) > self.ghosts_max {
            let at = self.others.pop(GHOST).and_then(|key| self.stack.find(key));
            self.stack.remove(at.expect("a ghost is in the stack"));
        }
    }

    fn miss(&mut self, key: u64, gone: &mut Vec<u64>) {
        if self.low < self.low_max() {
            // Until there are enough of them every entry counts as one of low distance.
            self.promote(key);
            return;
        }
        if self.others.len(HIGH) == self.high_max {
            self.evict(gone);
        }
        if self.stack.find(key).is_some() {
            self.promote(key);
        } else {
            self.stack.push(STACK, key);
            self.others.push(HIGH, key);
        }
        self.bound_ghosts();
    }
}

impl Cache for Lirs {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        if !self.contains(key) {
            self.miss(key, gone);
            return Outcome::Admitted;
        }
        let in_stack = self.stack.find(key);
        match (self.others.find(key), in_stack) {
            (None, _) => {
                self.stack_up(key);
                self.prune();
            }
            (Some(_), Some(_)) => self.promote(key),
            (Some(at), None) => {
                self.stack.push(STACK, key);
                self.others.move_to(at, HIGH);
            }
        }
        Outcome::Hit
    }

    fn contains(&self, key: u64) -> bool {
        match self.others.list_with(key) {
            Some(list) => list == HIGH,
            None => self.stack.find(key).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lru;

    fn hits(cache: &mut dyn Cache, keys: impl IntoIterator<Item = u64>) -> usize {
        let outcomes = keys
            .into_iter()
            .map(|key| cache.access(key, &mut Vec::new()));
        outcomes.filter(|outcome| *outcome == Outcome::Hit).count()
    }

    #[test]
    fn a_loop_slightly_larger_than_the_cache_hits_but_for_the_excess_and_never_in_lru() {
        let rounds = || (0..10).flat_map(|_| 0..110);
        assert_eq!(hits(&mut Lru::new(100), rounds()), 0);
        // In each of the nine rounds after the first all 99 of low distance.
        assert_eq!(hits(&mut Lirs::new(100), rounds()), 9 * 99);
    }

    #[test]
    fn a_key_used_again_while_remembered_takes_the_place_of_the_one_unused_longest() {
        let mut cache = Lirs::new(3);
        hits(&mut cache, [1, 2, 3, 4]);
        assert!(!cache.contains(3));
        hits(&mut cache, [3]);
        assert_eq!(cache.others.list_with(3), None, "of low distance");
        assert_eq!(cache.others.list_with(1), Some(HIGH));
    }

    #[test]
    fn an_entry_of_high_distance_used_again_gets_a_low_one_only_if_it_is_in_the_stack() {
        let mut cache = Lirs::new(300);
        hits(&mut cache, (0..297).chain([1_000, 1_001, 1_002]));
        hits(&mut cache, [1_000, 1_001, 1_002]);
        for (key, list) in [
            (1_000, None),
            (1_002, None),
            (0, Some(HIGH)),
            (2, Some(HIGH)),
        ] {
            assert_eq!(cache.others.list_with(key), list, "{key}");
        }
        hits(&mut cache, [0, 2_000]);
        assert_eq!(cache.others.list_with(0), Some(HIGH));
        assert!(!cache.contains(1), "it was used longer ago than 0");
        hits(&mut cache, [0]);
        assert_eq!(
            cache.others.list_with(0),
            None,
            "the use before put it there"
        );
    }

    #[test]
    fn ghosts_and_the_stack_are_bounded() {
        let mut cache = Lirs::new(10);
        hits(&mut cache, 0..1_000);
        assert_eq!(cache.others.len(GHOST), 20);
        assert_eq!(cache.stack.len(STACK), 30);
    }

    #[test]
    fn the_stack_ends_in_a_key_of_low_distance_and_the_first_ghost_is_its_lowest() {
        let mut cache = Lirs::new(20);
        let mut number = 1_u64;
        for _ in 0..20_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let spread = 1 << (number >> 33 & 7);
            hits(&mut cache, [(number >> 40) % spread]);
            let mut at = cache.stack.oldest(STACK);
            let oldest = at.map(|at| cache.others.list_with(cache.stack.key(at)));
            assert_eq!(oldest, Some(None), "the oldest has a low distance");
            let mut ghost = cache.others.oldest(GHOST);
            while let Some(here) = at {
                let key = cache.stack.key(here);
                if cache.others.list_with(key) == Some(GHOST) {
                    assert!(ghost.is_some_and(|ghost| cache.others.key(ghost) == key));
                    ghost = ghost.and_then(|ghost| cache.others.newer(ghost));
                }
                at = cache.stack.newer(here);
            }
            assert!(ghost.is_none());
        }
    }
}
