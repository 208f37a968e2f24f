//! Miniature simulation of the policy itself with another size of the fast tier.
//!
//! Of the chunks a part is taken by its hash, and the policy runs over those alone with sizes that are
//! that part of the real ones, without data (C. A. Waldspurger, T. Saemundson, I. Ahmad, N. Park, "Cache Modeling and
//! Optimization using Miniature Simulations", USENIX ATC 2017).

use crate::moves::Arrival;
use crate::place::{Blocks, split};
use crate::policy::{Config, Policy};
use units::hash::mix_but_last;
use units::{CHUNK_BLOCKS, EXTENT_BLOCKS};

/// The policy with a part of the chunks.
pub struct Miniature {
    policy: Policy,
    /// Chunks with smaller hashes are taken.
    below: u64,
    keep: Vec<Arrival>,
    parts: u64,
    hits: u64,
    follows: bool,
}

impl Miniature {
    /// Of sizes that are those of a whole tier, with a share of the chunks, more than 0 and at most 1.
    pub fn new(whole: Config, share: f64) -> Self {
        let part = |blocks: u64| (blocks as f64 * share) as u64;
        Self {
            policy: Policy::new(Config {
                fast_blocks: part(whole.fast_blocks),
                ram_blocks: part(whole.ram_blocks),
                ..whole
            }),
            below: (u64::MAX as f64 * share) as u64,
            keep: Vec::new(),
            parts: 0,
            hits: 0,
            follows: false,
        }
    }

    /// The same, of an owner who reads what is foreseen.
    pub fn following(self) -> Self {
        Self {
            follows: true,
            ..self
        }
    }

    /// The whole tier, and RAM, have other sizes now.
    pub fn resize(&mut self, fast_blocks: u64, ram_blocks: u64, share: f64) {
        let part = |blocks: u64| (blocks as f64 * share) as u64;
        self.policy.resize(part(fast_blocks));
        self.policy.resize_ram(part(ram_blocks));
    }

    /// Whether a chunk is one of the model's.
    #[inline]
    pub fn takes(&self, volume: u32, chunk: u64) -> bool {
        let most = mix_but_last(u64::from(volume) << 40 ^ chunk);
        // Mostly its upper bits, which the last step leaves as they are, say that it is not.
        most >> 31 <= self.below >> 31 && most ^ most >> 33 <= self.below
    }

    /// Uses of extents that were counted.
    pub fn uses(&self) -> u64 {
        self.parts
    }

    /// Counts from here on; what is where stays.
    pub fn count_anew(&mut self) {
        (self.parts, self.hits) = (0, 0);
    }

    /// A volume is no more.
    pub fn forget(&mut self, volume: u32) {
        self.policy.forget(volume);
    }

    /// A host reads or writes the blocks `first` to `end` of a volume, without `end`.
    #[inline]
    pub fn used(&mut self, volume: u32, first: u64, end: u64, write: bool) {
        let size = CHUNK_BLOCKS as u64;
        for chunk in first / size..end.div_ceil(size) {
            if self.takes(volume, chunk) {
                let (low, high) = (first.max(chunk * size), end.min((chunk + 1) * size));
                self.taken(volume, low, high, write);
            }
        }
    }

    /// The share of the uses of extents, writes and reads, that do not wait for the slow tier; nothing
    /// before there was any.
    pub fn hit_share(&self) -> Option<f64> {
        (self.parts > 0).then(|| self.hits as f64 / self.parts as f64)
    }

    fn taken(&mut self, volume: u32, first: u64, end: u64, write: bool) {
        let mut absent: Option<(u64, u64)> = None;
        for part in split(volume, first, end) {
            self.parts += 1;
            if write {
                self.policy.wrote(part);
                self.hits += 1;
                continue;
            }
            let found = self.policy.read(part);
            let mask = found.absent;
            if self.follows && found.is_new {
                self.policy.follow(part);
            }
            if mask == 0 {
                self.hits += 1;
                continue;
            }
            let start = part.extent.number * EXTENT_BLOCKS as u64;
            let low = start + u64::from(mask.trailing_zeros());
            let high = start + u64::from(u16::BITS - mask.leading_zeros());
            absent = Some((absent.map_or(low, |it| it.0), high));
        }
        if let Some((first, end)) = absent {
            self.policy.fetch(volume, first, end, None, &mut self.keep);
            for arrival in &self.keep {
                self.policy.arrived(arrival);
            }
        }
        while self.follows && self.policy.foreseen(None, &mut self.keep).is_some() {
            for arrival in &self.keep {
                self.policy.arrived(arrival);
            }
        }
        while self.policy.leave_ram().is_some() {}
        while self.policy.fast_excess() > 0
            && let Some(victim) = self.policy.victim()
        {
            self.policy.left_fast(Blocks {
                extent: victim.extent,
                mask: victim.fast,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::hash::mix;

    const WHOLE: Config = Config {
        fast_blocks: 100_000,
        ram_blocks: 5_000,
        margin: 9.0,
        seed: 1,
    };

    fn hit_share(whole: Config, share: f64) -> f64 {
        let mut miniature = Miniature::new(whole, share);
        for use_ in 0..400_000u64 {
            // Blocks of 200,000, far from each other.
            let block = mix(use_) % 200_000 * 7;
            miniature.used(1, block, block + 1, false);
        }
        miniature.hit_share().expect("something was used")
    }

    #[test]
    fn a_tenth_of_the_chunks_tells_of_all() {
        let (whole, part) = (hit_share(WHOLE, 1.0), hit_share(WHOLE, 0.1));
        assert!((whole - part).abs() < 0.03, "{whole} {part}");
    }

    #[test]
    fn more_room_hits_more() {
        let twice = Config {
            fast_blocks: 2 * WHOLE.fast_blocks,
            ..WHOLE
        };
        assert!(hit_share(twice, 0.1) > hit_share(WHOLE, 0.1) + 0.05);
    }

    #[test]
    fn nothing_used_tells_nothing() {
        assert_eq!(Miniature::new(WHOLE, 0.5).hit_share(), None);
    }
}
