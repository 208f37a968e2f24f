//! ARC: two LRU lists, of keys seen once and seen again, whose shares follow the hits among the
//! keys that left them.
//!
//! N. Megiddo, D. S. Modha: "ARC: A Self-Tuning, Low Overhead Replacement Cache", USENIX FAST 2003,
//! figure 4. No parameters. As there, keys are remembered up to as many as there are entries, and
//! the target of the shares is a real number.

use crate::list::Lists;
use crate::{Cache, Outcome};

/// Entries that were used once since they came.
const ONCE: usize = 0;
/// Entries that were used again.
const AGAIN: usize = 1;
/// Keys remembered that left `ONCE`.
const ONCE_GONE: usize = 2;
/// Keys remembered that left `AGAIN`.
const AGAIN_GONE: usize = 3;

/// Adaptive replacement cache.
pub struct Arc {
    capacity: usize,
    /// The paper's T1, T2, B1 and B2.
    lists: Lists<4>,
    /// The paper's p: how many entries `ONCE` should have.
    target: f64,
}

impl Arc {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            lists: Lists::new(),
            target: 0.0,
        }
    }

    /// The paper's REPLACE: an entry leaves and its key is remembered.
    fn replace(&mut self, missed_again: bool, gone: &mut Vec<u64>) {
        let once = self.lists.len(ONCE);
        let excess = once as f64 - self.target;
        let over = excess > 0.0 || (missed_again && excess == 0.0);
        let (from, to) = if once > 0 && over {
            (ONCE, ONCE_GONE)
        } else {
            (AGAIN, AGAIN_GONE)
        };
        if let Some(at) = self.lists.oldest(from) {
            gone.push(self.lists.key(at));
            self.lists.move_to(at, to);
        }
    }

    /// Makes room for a key that is not remembered; the paper's case IV.
    fn make_room(&mut self, gone: &mut Vec<u64>) {
        let [once, again, once_gone, again_gone] =
            [ONCE, AGAIN, ONCE_GONE, AGAIN_GONE].map(|list| self.lists.len(list));
        if once == self.capacity {
            gone.extend(self.lists.pop(ONCE));
        } else if once + once_gone == self.capacity {
            self.lists.pop(ONCE_GONE);
            self.replace(false, gone);
        } else if once + again == self.capacity {
            if once + again + once_gone + again_gone == 2 * self.capacity {
                self.lists.pop(AGAIN_GONE);
            }
            self.replace(false, gone);
        }
    }

    /// Moves the target by a hit among the remembered keys.
    fn learn(&mut self, missed_again: bool) {
        let once = self.lists.len(ONCE_GONE) as f64;
        let again = self.lists.len(AGAIN_GONE) as f64;
        self.target = if missed_again {
            (self.target - (once / again).max(1.0)).max(0.0)
        } else {
            (self.target + (again / once).max(1.0)).min(self.capacity as f64)
        };
    }
}

impl Cache for Arc {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        let Some(at) = self.lists.find(key) else {
            self.make_room(gone);
            self.lists.push(ONCE, key);
            return Outcome::Admitted;
        };
        let list = self.lists.list(at);
        let hit = list == ONCE || list == AGAIN;
        if !hit {
            let missed_again = list == AGAIN_GONE;
            self.learn(missed_again);
            self.replace(missed_again, gone);
        }
        self.lists.move_to(at, AGAIN);
        if hit { Outcome::Hit } else { Outcome::Admitted }
    }

    fn contains(&self, key: u64) -> bool {
        matches!(self.lists.list_with(key), Some(ONCE | AGAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cache: &mut Arc, keys: impl IntoIterator<Item = u64>) -> Vec<Outcome> {
        let keys = keys.into_iter();
        keys.map(|key| cache.access(key, &mut Vec::new())).collect()
    }

    #[test]
    fn the_target_grows_by_hits_among_keys_seen_once_and_shrinks_by_those_seen_again() {
        let mut cache = Arc::new(4);
        run(&mut cache, [1, 2, 1, 2, 3, 4, 5]);
        assert_eq!((cache.contains(3), cache.target), (false, 0.0));
        run(&mut cache, [3]);
        assert_eq!(cache.target, 1.0);
        assert_eq!(
            cache.lists.list_with(1),
            Some(AGAIN),
            "4 left, it was over the target"
        );
        run(&mut cache, [4]);
        assert_eq!(cache.target, 2.0);
        assert_eq!(cache.lists.list_with(1), Some(AGAIN_GONE));
        run(&mut cache, [1]);
        assert_eq!(cache.target, 1.0);
        assert_eq!(
            cache.lists.list_with(5),
            Some(ONCE_GONE),
            "the only one of its list, which is at the target: it leaves for a key seen again"
        );
    }

    #[test]
    fn the_remembered_keys_and_the_entries_are_at_most_twice_the_capacity() {
        let mut cache = Arc::new(10);
        for round in 0..2_000 {
            run(&mut cache, [round * 7 % 31, round % 13, round]);
            let [once, again, once_gone, again_gone] =
                [0, 1, 2, 3].map(|list| cache.lists.len(list));
            assert!(once + once_gone <= 10);
            assert!(once + again + once_gone + again_gone <= 20);
        }
    }
}
