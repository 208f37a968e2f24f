//! How much a miss fetches: more where misses are dense.
//!
//! A lone miss fetches its 64 KiB extent: a disk needs hardly longer for it than for 4 KiB. Where
//! half of the quarters of an aligned region were fetched of late, the whole region is: 256 KiB,
//! 1 MiB, 4 MiB, 16 MiB. When what was fetched ahead goes unused, the largest region shrinks.

use std::collections::{BTreeMap, VecDeque};
use units::CHUNK_EXTENTS;

/// Chunks that are remembered.
const REMEMBERED: usize = 8192;
/// Regions of 64 KiB << 2 * level.
const TOP_LEVEL: u32 = 4;
/// Outcomes before the largest region is thought over.
const SAMPLE: u32 = 512;

/// Extents of a chunk to fetch: bit 0 is its first 64 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetch {
    /// Chunk of the volume.
    pub chunk: u32,
    /// Extents of it.
    pub extents: u16,
}

/// Where misses were of late.
pub struct Regions {
    /// Extents fetched, by volume and chunk.
    fetched: BTreeMap<(u32, u32), u16>,
    order: VecDeque<(u32, u32)>,
    largest: u32,
    used: u32,
    unused: u32,
}

impl Default for Regions {
    fn default() -> Self {
        Self {
            fetched: BTreeMap::new(),
            order: VecDeque::new(),
            largest: TOP_LEVEL,
            used: 0,
            unused: 0,
        }
    }
}

impl Regions {
    /// What a miss of `extent` of `chunk` fetches: at least that extent.
    pub fn miss(&mut self, volume: u32, chunk: u32, extent: usize) -> Vec<Fetch> {
        let at = u64::from(chunk) * CHUNK_EXTENTS as u64 + extent as u64;
        let mut first = at;
        let mut count = 1;
        for level in 1..=self.largest {
            let width = 1u64 << (2 * level);
            let start = at / width * width;
            let quarters = (0..4).filter(|quarter| {
                let from = start + quarter * width / 4;
                (from..from + width / 4).contains(&at) || self.is_dense(volume, from, width / 4)
            });
            if quarters.count() < 2 {
                break;
            }
            (first, count) = (start, width);
        }
        let mut fetches: Vec<Fetch> = Vec::new();
        for extent in first..first + count {
            let (chunk, bit) = (extent / CHUNK_EXTENTS as u64, extent % CHUNK_EXTENTS as u64);
            if fetches
                .last()
                .is_none_or(|fetch| u64::from(fetch.chunk) != chunk)
            {
                fetches.push(Fetch {
                    chunk: chunk as u32,
                    extents: 0,
                });
            }
            fetches.last_mut().expect("just made").extents |= 1 << bit;
        }
        for fetch in &fetches {
            self.remember(volume, *fetch);
        }
        fetches
    }

    /// Whether at least half of the extents of a region were fetched.
    fn is_dense(&self, volume: u32, from: u64, count: u64) -> bool {
        let per_chunk = CHUNK_EXTENTS as u64;
        let (first, last) = (from / per_chunk, (from + count - 1) / per_chunk);
        let range = (volume, first as u32)..=(volume, last as u32);
        let mask = if count >= per_chunk {
            u16::MAX
        } else {
            ((1u16 << count) - 1) << (from % per_chunk)
        };
        let known = self
            .fetched
            .range(range)
            .map(|(_, extents)| (extents & mask).count_ones());
        u64::from(known.sum::<u32>()) * 2 >= count
    }

    fn remember(&mut self, volume: u32, fetch: Fetch) {
        let key = (volume, fetch.chunk);
        match self.fetched.get_mut(&key) {
            Some(extents) => *extents |= fetch.extents,
            None => {
                self.fetched.insert(key, fetch.extents);
                self.order.push_back(key);
                if self.order.len() > REMEMBERED
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.fetched.remove(&oldest);
                }
            }
        }
    }

    /// An extent left RAM: whether any host had asked for it.
    pub fn left(&mut self, was_used: bool) {
        if was_used {
            self.used += 1;
        } else {
            self.unused += 1;
        }
        if self.used + self.unused >= SAMPLE {
            if self.unused > 3 * self.used {
                self.largest = self.largest.saturating_sub(1).max(1);
            } else if self.used > self.unused {
                self.largest = (self.largest + 1).min(TOP_LEVEL);
            }
            (self.used, self.unused) = (0, 0);
        }
    }

    /// Forgets a volume.
    pub fn forget(&mut self, volume: u32) {
        self.fetched.retain(|key, _| key.0 != volume);
        self.order.retain(|key| key.0 != volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(fetches: &[Fetch]) -> u32 {
        fetches.iter().map(|fetch| fetch.extents.count_ones()).sum()
    }

    #[test]
    fn a_lone_miss_fetches_its_extent() {
        let mut regions = Regions::default();
        for chunk in [5, 500, 50_000] {
            assert_eq!(regions.miss(1, chunk, 3), [Fetch { chunk, extents: 8 }]);
        }
    }

    #[test]
    fn dense_misses_fetch_regions_that_grow_up_to_16_mib() {
        let mut regions = Regions::default();
        let mut largest = 0;
        let mut have = std::collections::BTreeSet::new();
        let mut misses = 0;
        for step in 0u64..4096 {
            let at = step * 2654435761 % 1024;
            if have.contains(&at) {
                continue;
            }
            misses += 1;
            let fetches = regions.miss(1, (at / 16) as u32, (at % 16) as usize);
            largest = largest.max(extents(&fetches));
            for fetch in fetches {
                let bits = (0..16).filter(|bit| fetch.extents >> bit & 1 == 1);
                have.extend(bits.map(|bit| u64::from(fetch.chunk) * 16 + bit));
            }
        }
        assert_eq!((have.len(), largest), (1024, 256));
        assert!(misses < 300, "{misses} misses for 64 MiB");
    }

    #[test]
    fn another_volumes_misses_do_not_count() {
        let mut regions = Regions::default();
        regions.miss(1, 0, 0);
        assert_eq!(extents(&regions.miss(2, 0, 1)), 1);
        assert_eq!(extents(&regions.miss(1, 0, 1)), 4);
    }

    #[test]
    fn regions_shrink_when_what_was_fetched_goes_unused() {
        let mut regions = Regions::default();
        (0..4 * SAMPLE).for_each(|_| regions.left(false));
        regions.miss(1, 0, 0);
        assert_eq!(extents(&regions.miss(1, 0, 1)), 4);
        regions.miss(1, 0, 4);
        assert_eq!(extents(&regions.miss(1, 0, 5)), 4);
    }

    #[test]
    fn memory_is_bounded() {
        let mut regions = Regions::default();
        (0..100_000).for_each(|chunk| drop(regions.miss(1, chunk * 64, 0)));
        assert_eq!(regions.fetched.len(), REMEMBERED);
    }
}
