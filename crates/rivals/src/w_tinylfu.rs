//! W-TinyLFU: entries that leave a small LRU window are admitted to the main cache only if they were used more
//! often recently than the entry that had to leave for it.
//!
//! G. Einziger, R. Friedman, B. Manes: "TinyLFU: A Highly Efficient Cache Admission Policy", ACM
//! Transactions on Storage 13(4), 2017. Parameters, the paper's: the window is 1 % of the capacity,
//! at least one entry; the main cache is a segmented LRU of which 80 % are for entries used again;
//! see the sketch for its own. Left out: the doorkeeper, which saves the sketch memory, and
//! Caffeine's window that changes its size, a later work.

use crate::list::{At, Lists};
use crate::sketch::Sketch;
use crate::{Cache, Outcome};

/// New entries.
const WINDOW: usize = 0;
/// Of the main cache those that were not used since they came into it, or not for long.
const PROBATION: usize = 1;
/// Of the main cache those that were.
const PROTECTED: usize = 2;

/// Windowed TinyLFU.
pub struct WTinyLfu {
    window_max: usize,
    main_max: usize,
    protected_max: usize,
    lists: Lists<3>,
    uses: Sketch,
}

impl WTinyLfu {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        let window_max = (capacity / 100).max(1).min(capacity);
        let main_max = capacity - window_max;
        Self {
            window_max,
            main_max,
            protected_max: main_max * 4 / 5,
            lists: Lists::new(),
            uses: Sketch::new(capacity),
        }
    }

    fn hit(&mut self, at: At) {
        let segment = match self.lists.list(at) {
            WINDOW => WINDOW,
            _ => PROTECTED,
        };
        self.lists.move_to(at, segment);
        if self.lists.len(PROTECTED) > self.protected_max
            && let Some(oldest) = self.lists.oldest(PROTECTED)
        {
            self.lists.move_to(oldest, PROBATION);
        }
    }

    /// The oldest of the window comes into the main cache, or leaves.
    fn leave_window(&mut self, candidate: At, gone: &mut Vec<u64>) {
        if self.lists.len(PROBATION) + self.lists.len(PROTECTED) < self.main_max {
            self.lists.move_to(candidate, PROBATION);
            return;
        }
        let oldest = |segment| self.lists.oldest(segment);
        let uses = |at| self.uses.estimate(self.lists.key(at));
        match oldest(PROBATION).or(oldest(PROTECTED)) {
            Some(victim) if uses(candidate) > uses(victim) => {
                gone.push(self.lists.remove(victim));
                self.lists.move_to(candidate, PROBATION);
            }
            _ => gone.push(self.lists.remove(candidate)),
        }
    }
}

impl Cache for WTinyLfu {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.window_max == 0 {
            return Outcome::Bypassed;
        }
        self.uses.count(key);
        if let Some(at) = self.lists.find(key) {
            self.hit(at);
            return Outcome::Hit;
        }
        if self.lists.len(WINDOW) == self.window_max
            && let Some(candidate) = self.lists.oldest(WINDOW)
        {
            self.leave_window(candidate, gone);
        }
        self.lists.push(WINDOW, key);
        Outcome::Admitted
    }

    fn contains(&self, key: u64) -> bool {
        self.lists.find(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cache: &mut WTinyLfu, keys: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut gone = Vec::new();
        for key in keys {
            cache.access(key, &mut gone);
        }
        gone
    }

    /// A cache of ten, filled: the keys 0 to 8 in the main one, 0 next to leave it, and 9 in the
    /// window.
    fn filled() -> WTinyLfu {
        let mut cache = WTinyLfu::new(10);
        assert!(run(&mut cache, 0..10).is_empty());
        cache
    }

    #[test]
    fn a_key_used_once_is_refused_in_favour_of_a_victim_used_more_often() {
        let mut cache = filled();
        for _ in 0..3 {
            cache.uses.count(0);
        }
        assert_eq!(run(&mut cache, [50, 51, 52]), [9, 50, 51]);
        assert!(cache.contains(0));
    }

    #[test]
    fn a_key_used_more_often_than_the_victim_takes_its_place() {
        let mut cache = filled();
        assert_eq!(run(&mut cache, [50, 50, 51]), [9, 0]);
        assert_eq!(cache.lists.list_with(50), Some(PROBATION));
    }

    #[test]
    fn a_use_in_the_main_cache_protects_until_others_need_the_room() {
        let mut cache = filled();
        run(&mut cache, 0..7);
        assert_eq!(cache.lists.list_with(6), Some(PROTECTED));
        run(&mut cache, [7]);
        assert_eq!(cache.lists.list_with(0), Some(PROBATION));
    }
}
