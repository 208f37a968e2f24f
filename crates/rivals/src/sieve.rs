//! SIEVE: a queue in the order of arrival, over which a hand goes from the oldest to the newest; it
//! evicts the first entry that was not used since it last came by.
//!
//! Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi: "SIEVE is Simpler than LRU: an Efficient
//! Turn-Key Eviction Algorithm for Web Caches", USENIX NSDI 2024, algorithm 1. No parameters.

use crate::list::{At, Lists};
use crate::{Cache, Outcome};

const QUEUE: usize = 0;
const VISITED: u8 = 1;

/// SIEVE.
pub struct Sieve {
    capacity: usize,
    /// An entry's mark is whether it was visited.
    queue: Lists<1>,
    /// Where the search for what leaves continues; at the oldest if nowhere.
    hand: Option<At>,
}

impl Sieve {
    /// An empty cache of so many entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            queue: Lists::new(),
            hand: None,
        }
    }

    fn evict(&mut self) -> Option<u64> {
        let mut at = self.hand.or(self.queue.oldest(QUEUE))?;
        while self.queue.mark(at) == VISITED {
            self.queue.set_mark(at, 0);
            at = self.queue.newer(at).or(self.queue.oldest(QUEUE))?;
        }
        self.hand = self.queue.newer(at);
        Some(self.queue.remove(at))
    }
}

impl Cache for Sieve {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        if let Some(at) = self.queue.find(key) {
            self.queue.set_mark(at, VISITED);
            return Outcome::Hit;
        }
        if self.queue.len(QUEUE) == self.capacity {
            gone.extend(self.evict());
        }
        self.queue.push(QUEUE, key);
        Outcome::Admitted
    }

    fn contains(&self, key: u64) -> bool {
        self.queue.find(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hand_passes_by_what_was_visited_and_takes_the_first_that_was_not() {
        // In the manner of the paper's figure 1: seven entries, h the newest and a the oldest, of
        // which h, b and a were visited. For i the hand passes by a, b and d and takes e; for j it
        // continues from there and takes f.
        let [a, b, d, e, f, g, h, i, j] = [1, 2, 4, 5, 6, 7, 8, 9, 10];
        let mut cache = Sieve::new(7);
        let mut gone = Vec::new();
        for key in [a, b, d, e, f, g, h, a, b, h] {
            cache.access(key, &mut gone);
        }
        assert!(gone.is_empty());
        for key in [h, a, d, i, b, j] {
            cache.access(key, &mut gone);
        }
        assert_eq!(gone, [e, f]);
        let hand = cache.hand.map(|at| cache.queue.key(at));
        assert_eq!(hand, Some(g));
    }

    #[test]
    fn after_the_newest_the_hand_starts_again_at_the_oldest() {
        let mut cache = Sieve::new(2);
        let mut gone = Vec::new();
        // 2, the newest, leaves for 3, as 1 was visited; and 4 finds 1 at the other end, not 3.
        for key in [1, 2, 1, 3, 4] {
            cache.access(key, &mut gone);
        }
        assert_eq!(gone, [2, 1]);
    }
}
