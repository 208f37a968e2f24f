//! S3-FIFO: a small queue that most new keys do not survive, a main queue with second chances, and
//! the keys remembered that the small one abandoned.
//!
//! J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi: "FIFO Queues are All You Need for Cache
//! Eviction", SOSP 2023, algorithm 1. Parameters, the paper's: the small queue is 10 % of the
//! capacity, as many keys are remembered as the main queue has entries, uses are counted to 3, and
//! more than one use in the small queue moves an entry to the main one, where its count starts at
//! 0.
//!
//! Unlike algorithm 1, which evicts from the small queue even if the main one just did so, nothing
//! leaves once there is room for the new key.

use crate::list::{At, Lists};
use crate::{Cache, Outcome};

const SMALL: usize = 0;
const MAIN: usize = 1;
/// Keys remembered that left `SMALL`.
const GHOST: usize = 2;

const USES_MAX: u8 = 3;
/// Uses in the small queue from which on an entry moves to the main one.
const USES_TO_MOVE: u8 = 2;

/// Simple, scalable, three static queues.
pub struct S3Fifo {
    capacity: usize,
    small_max: usize,
    ghosts_max: usize,
    /// An entry's mark is its uses since it came.
    lists: Lists<3>,
}

impl S3Fifo {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        let small_max = (capacity / 10).max(1);
        Self {
            capacity,
            small_max,
            ghosts_max: capacity.saturating_sub(small_max),
            lists: Lists::new(),
        }
    }

    fn make_room(&mut self, gone: &mut Vec<u64>) {
        while self.lists.len(SMALL) + self.lists.len(MAIN) >= self.capacity {
            match self.lists.oldest(SMALL) {
                Some(at) if self.lists.len(SMALL) >= self.small_max => self.leave_small(at, gone),
                _ => self.evict_main(gone),
            }
        }
    }

    fn leave_small(&mut self, at: At, gone: &mut Vec<u64>) {
        if self.lists.mark(at) >= USES_TO_MOVE {
            self.lists.set_mark(at, 0);
            self.lists.move_to(at, MAIN);
            return;
        }
        gone.push(self.lists.key(at));
        self.lists.move_to(at, GHOST);
        if self.lists.len(GHOST) > self.ghosts_max {
            self.lists.pop(GHOST);
        }
    }

    fn evict_main(&mut self, gone: &mut Vec<u64>) {
        while let Some(at) = self.lists.oldest(MAIN) {
            let uses = self.lists.mark(at);
            if uses == 0 {
                gone.push(self.lists.remove(at));
                return;
            }
            self.lists.set_mark(at, uses - 1);
            self.lists.move_to(at, MAIN);
        }
    }
}

impl Cache for S3Fifo {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        let found = self.lists.find(key);
        let queue = match found {
            Some(at) if self.lists.list(at) != GHOST => {
                let uses = self.lists.mark(at) + 1;
                self.lists.set_mark(at, uses.min(USES_MAX));
                return Outcome::Hit;
            }
            Some(at) => {
                // Taken out first, for making room may forget it.
                self.lists.remove(at);
                MAIN
            }
            None => SMALL,
        };
        self.make_room(gone);
        self.lists.push(queue, key);
        Outcome::Admitted
    }

    fn contains(&self, key: u64) -> bool {
        matches!(self.lists.list_with(key), Some(SMALL | MAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cache: &mut S3Fifo, keys: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut gone = Vec::new();
        for key in keys {
            cache.access(key, &mut gone);
        }
        gone
    }

    #[test]
    fn one_more_use_does_not_save_an_entry_of_the_small_queue_and_two_do() {
        let mut cache = S3Fifo::new(20);
        run(&mut cache, (0..20).chain([0, 1, 1]));
        assert_eq!(run(&mut cache, [20, 21]), [0, 2]);
        let one = cache.lists.find(1).expect("remembered or there");
        assert_eq!((cache.lists.list(one), cache.lists.mark(one)), (MAIN, 0));
    }

    #[test]
    fn a_key_that_is_remembered_comes_into_the_main_queue() {
        let mut cache = S3Fifo::new(20);
        run(&mut cache, (0..21).chain([0]));
        assert_eq!(cache.lists.list_with(0), Some(MAIN));
        assert_eq!(cache.lists.list_with(20), Some(SMALL));
    }

    #[test]
    fn the_main_queue_is_at_most_one_over_its_share_and_as_many_keys_are_remembered() {
        let mut cache = S3Fifo::new(20);
        // All of the first twenty move to the main queue, before there is anything in it.
        run(&mut cache, (0..20).cycle().take(60));
        run(&mut cache, [20]);
        assert!(cache.lists.len(MAIN) <= 18 + 1);
        run(&mut cache, [21]);
        assert!(cache.contains(20), "the small queue is under its share");
        run(&mut cache, 100..200);
        assert_eq!(cache.lists.len(GHOST), 18);
    }

    #[test]
    fn the_main_queue_gives_as_many_more_chances_as_there_were_uses() {
        let mut cache = S3Fifo::new(4);
        for key in [0, 1] {
            cache.lists.push(MAIN, key);
        }
        run(&mut cache, [0, 0, 1]);
        let mut gone = Vec::new();
        cache.evict_main(&mut gone);
        assert_eq!(gone, [1]);
        cache.evict_main(&mut gone);
        assert_eq!(gone, [1, 0]);
    }
}
