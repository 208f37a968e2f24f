//! NHIT, the promotion policy of Open CAS: an entry is admitted at its third use.
//!
//! Open CAS Framework, <https://open-cas.com>, promotion policy `nhit`; there is no paper.
//! Parameters, its defaults: the insertion threshold is 3 uses, and the trigger 80 %: as long as
//! less of the cache is filled, everything is let in and nothing is counted. Uses are counted in a
//! table of twice the cache's entries in which the key that was first counted longest ago makes
//! way; a key that is let in starts again from 0. Replacement is LRU.
//!
//! Left out: Open CAS decides for a request as a whole and lets in one of which a part is cached;
//! here a request is one key.

use crate::list::Lists;
use crate::{Cache, Lru, Outcome};

/// At which use a key is let in.
const THRESHOLD: u8 = 3;
/// From which occupancy on uses are counted, in percent.
const TRIGGER_PERCENT: usize = 80;
/// Counters for each entry of the cache.
const COUNTERS_PER_ENTRY: usize = 2;

const COUNTERS: usize = 0;

/// Open CAS's NHIT with threshold 3 over LRU.
pub struct Nhit3 {
    cache: Lru,
    /// Filled with so many entries, it begins to count.
    trigger: usize,
    /// An entry's mark is how often it was used. In the order in which keys came into the table.
    counters: Lists<1>,
    counters_max: usize,
}

impl Nhit3 {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            cache: Lru::new(capacity),
            trigger: (capacity * TRIGGER_PERCENT).div_ceil(100),
            counters: Lists::new(),
            counters_max: (capacity * COUNTERS_PER_ENTRY).max(1),
        }
    }

    /// Counts a use of a key that is not in the cache; whether it is to be let in.
    fn count(&mut self, key: u64) -> bool {
        let Some(at) = self.counters.find(key) else {
            if self.counters.len(COUNTERS) == self.counters_max {
                self.counters.pop(COUNTERS);
            }
            self.counters.push(COUNTERS, key);
            let at = self.counters.find(key).expect("just put there");
            self.counters.set_mark(at, 1);
            return false;
        };
        let uses = self.counters.mark(at) + 1;
        let enough = uses >= THRESHOLD;
        self.counters.set_mark(at, if enough { 0 } else { uses });
        enough
    }
}

impl Cache for Nhit3 {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.cache.hit(key) {
            return Outcome::Hit;
        }
        if self.cache.len() >= self.trigger && !self.count(key) {
            return Outcome::Bypassed;
        }
        self.cache.admit(key, gone)
    }

    fn contains(&self, key: u64) -> bool {
        self.cache.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Admitted, Bypassed, Hit};

    /// A cache of ten, filled to the trigger with the keys 0 to 7.
    fn filled() -> Nhit3 {
        let mut cache = Nhit3::new(10);
        for key in 0..8 {
            assert_eq!(cache.access(key, &mut Vec::new()), Admitted);
        }
        cache
    }

    fn run<const N: usize>(cache: &mut Nhit3, keys: [u64; N]) -> [Outcome; N] {
        keys.map(|key| cache.access(key, &mut Vec::new()))
    }

    #[test]
    fn once_filled_to_the_trigger_it_admits_at_the_third_use() {
        let found = run(&mut filled(), [50, 50, 50, 50]);
        assert_eq!(found, [Bypassed, Bypassed, Admitted, Hit]);
    }

    #[test]
    fn what_was_let_in_and_left_again_has_to_come_three_times_again() {
        let mut cache = filled();
        run(&mut cache, [50, 50, 50]);
        for key in 100..110 {
            run(&mut cache, [key, key, key]);
        }
        assert_eq!(
            run(&mut cache, [50, 50, 50]),
            [Bypassed, Bypassed, Admitted]
        );
    }

    #[test]
    fn a_count_is_forgotten_after_twice_the_capacity_of_other_keys() {
        let mut cache = filled();
        run(&mut cache, [50, 50]);
        for key in 100..119 {
            run(&mut cache, [key]);
        }
        assert_eq!(run(&mut cache, [50]), [Admitted]);

        let mut cache = filled();
        run(&mut cache, [50, 50]);
        for key in 100..120 {
            run(&mut cache, [key]);
        }
        assert_eq!(run(&mut cache, [50]), [Bypassed]);
    }
}
