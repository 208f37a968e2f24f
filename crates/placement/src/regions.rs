//! How much a miss fetches: more where misses are dense.
//!
//! A lone miss fetches its 64 KiB extent: a disk needs hardly longer for it than for 4 KiB. Where several
//! of the last misses were within one aligned region, all of that is fetched: 256 KiB, 1 MiB, 4 MiB, 16 MiB.
//!
//! As many misses in a region may come from all of it or from a few pieces. What tells them apart is how often
//! two of them are close together: of misses all over a region of 16 MiB one pair in 85 is within 256 KiB, of scattered extents
//! none, of pieces of 256 KiB that are a twentieth of it nearly all. Both are counted, and a region is fetched
//! while there are about as many close pairs as there should be.
//!
//! What is fetched ahead costs the disk time, and saves it a seek for each extent that somebody asks for before it
//! is forgotten; both are kept account of, and where the account is overdrawn nothing is fetched
//! ahead until hosts have earned it.

use std::collections::{BTreeMap, VecDeque};
use units::{CHUNK_EXTENTS, EXTENT};

/// Misses that are remembered.
const WINDOW: usize = 512;
/// Extents of which misses have to be among those remembered, by level: regions of 64 KiB << 2 * level.
const NEEDED: [usize; 5] = [1, 2, 3, 4, 6];
/// Close pairs that have to be expected before they are missed, and after which what is known counts half.
const KNOWN: f32 = 3.0;
const FORGET: f32 = 8.0;
/// Least and most of those expected in a region that is hot all over.
const CLOSE: std::ops::RangeInclusive<f32> = 0.4..=4.0;
/// Seeks for which a disk takes as long as for reading an extent: 64 KiB at 180 MB/s, of 8 ms.
const COST: f32 = EXTENT as f32 / 180e6 / 8e-3;
/// Seeks that may be spent before any have been saved: four seconds of a disk.
const LOAN: f32 = 512.0;
/// Seeks that every miss may spend beyond what was saved.
const A_MISS: f32 = 0.05;
/// What the account holds where what was fetched ahead is taken to be worth its room.
const SOUND: f32 = 64.0;

/// Extents of a chunk to fetch: bit 0 is its first 64 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetch {
    /// Chunk of the volume.
    pub chunk: u32,
    /// Extents of it.
    pub extents: u16,
}

/// Where misses were of late, and what fetching ahead has cost and saved.
pub struct Regions {
    /// Misses, by volume and extent.
    recent: BTreeMap<(u32, u64), u32>,
    order: VecDeque<(u32, u64)>,
    /// Pairs of misses by level of the region that they share.
    pairs: [Pairs; NEEDED.len()],
    /// Seeks that may still be spent.
    account: f32,
}

/// Pairs of misses within 256 KiB: those that there should be if the regions of a level were hot all over, and those
/// that there were.
#[derive(Clone, Copy, Default)]
struct Pairs {
    expected: f32,
    seen: f32,
}

impl Pairs {
    fn note(&mut self, expected: f32, seen: f32) {
        self.expected += expected;
        self.seen += seen;
        if self.expected > FORGET {
            self.expected /= 2.0;
            self.seen /= 2.0;
        }
    }

    /// Whether regions seem to be hot all over, or nothing is known of that.
    fn are_even(&self) -> bool {
        self.expected < KNOWN || CLOSE.contains(&(self.seen / self.expected))
    }
}

impl Default for Regions {
    fn default() -> Self {
        Self {
            recent: BTreeMap::new(),
            order: VecDeque::new(),
            pairs: Default::default(),
            account: LOAN,
        }
    }
}

impl Regions {
    /// What a miss of `extent` of `chunk` fetches: at least that extent.
    pub fn miss(&mut self, volume: u32, chunk: u32, extent: usize) -> Vec<Fetch> {
        let at = u64::from(chunk) * CHUNK_EXTENTS as u64 + extent as u64;
        self.count_pairs(volume, at);
        self.remember((volume, at));
        self.account = (self.account + A_MISS).min(LOAN);
        let (first, count) = self.region(volume, at);
        let mut fetches: Vec<Fetch> = Vec::new();
        for extent in first..first + count {
            let (chunk, bit) = (extent / CHUNK_EXTENTS as u64, extent % CHUNK_EXTENTS as u64);
            let chunk = chunk as u32;
            if fetches.last().is_none_or(|fetch| fetch.chunk != chunk) {
                fetches.push(Fetch { chunk, extents: 0 });
            }
            fetches.last_mut().expect("just made").extents |= 1 << bit;
        }
        fetches
    }

    /// The largest region around an extent in which misses are dense enough and that can be paid for.
    fn region(&self, volume: u32, at: u64) -> (u64, u64) {
        for level in (1..NEEDED.len()).rev() {
            let width = 1u64 << (2 * level);
            let start = at / width * width;
            let range = (volume, start)..(volume, start + width);
            let dense = self.recent.range(range).take(NEEDED[level]).count() == NEEDED[level];
            let even = self.pairs[level].are_even();
            if dense && even && self.account >= width as f32 * COST {
                return (start, width);
            }
        }
        (at, 1)
    }

    /// Counts the pairs that a miss makes with those before it.
    fn count_pairs(&mut self, volume: u32, at: u64) {
        let mut others = [0u32; NEEDED.len()];
        let largest = 1u64 << (2 * (NEEDED.len() - 1));
        let start = at / largest * largest;
        let near = self
            .recent
            .range((volume, start)..(volume, start + largest));
        for other in near
            .map(|((_, other), _)| *other)
            .filter(|other| *other != at)
        {
            let shared = |level: &usize| other >> (2 * level) == at >> (2 * level);
            let levels = (1..NEEDED.len()).filter(shared);
            levels.for_each(|level| others[level] += 1);
        }
        for (level, pairs) in self.pairs.iter_mut().enumerate().skip(2) {
            let close = 3.0 / ((1u32 << (2 * level)) - 1) as f32;
            pairs.note(others[level] as f32 * close, others[1] as f32);
        }
    }

    fn remember(&mut self, miss: (u32, u64)) {
        *self.recent.entry(miss).or_default() += 1;
        self.order.push_back(miss);
        if self.order.len() > WINDOW
            && let Some(oldest) = self.order.pop_front()
            && let Some(count) = self.recent.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.recent.remove(&oldest);
            }
        }
    }

    /// So many extents were fetched ahead.
    pub fn fetched(&mut self, extents: u32) {
        self.account -= extents as f32 * COST;
    }

    /// Somebody asked for an extent that had been fetched ahead, for the first time.
    pub fn used(&mut self) {
        self.account = (self.account + 1.0).min(LOAN);
    }

    /// Whether what is fetched ahead comes to be used, as far as is known: then it is worth being kept
    /// beyond its time in RAM.
    pub fn is_sound(&self) -> bool {
        self.account >= SOUND
    }

    /// Forgets a volume.
    pub fn forget(&mut self, volume: u32) {
        self.recent.retain(|key, _| key.0 != volume);
        self.order.retain(|key| key.0 != volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Random;
    use std::collections::BTreeSet;

    fn extents(fetches: &[Fetch]) -> u32 {
        fetches.iter().map(|fetch| fetch.extents.count_ones()).sum()
    }

    /// Asks for extents at random until nearly all of `hot` are there; everything that was fetched is kept.
    /// Returns misses, and extents fetched that nobody asks for.
    fn read(regions: &mut Regions, hot: &[u64]) -> (usize, usize) {
        let (mut have, mut misses) = (BTreeSet::new(), 0);
        let (mut ahead, wanted) = (BTreeSet::new(), hot.iter().collect::<BTreeSet<_>>());
        let mut random = Random::new(7);
        for _ in 0..hot.len() * 8 {
            let at = hot[random.below(hot.len())];
            if ahead.remove(&at) {
                regions.used();
            }
            if !have.insert(at) {
                continue;
            }
            misses += 1;
            let fetches = regions.miss(1, (at / 16) as u32, (at % 16) as usize);
            for fetch in fetches {
                let bits = (0..16).filter(|bit| fetch.extents >> bit & 1 == 1);
                let bits = bits.map(|bit| u64::from(fetch.chunk) * 16 + bit);
                let new: Vec<u64> = bits.filter(|extent| have.insert(*extent)).collect();
                regions.fetched(new.len() as u32);
                ahead.extend(new);
            }
        }
        (
            misses,
            have.iter()
                .filter(|extent| !wanted.contains(extent))
                .count(),
        )
    }

    #[test]
    fn a_lone_miss_fetches_its_extent() {
        let mut regions = Regions::default();
        for chunk in [5, 500, 50_000] {
            assert_eq!(regions.miss(1, chunk, 3), [Fetch { chunk, extents: 8 }]);
        }
    }

    #[test]
    fn what_is_hot_in_one_piece_is_fetched_in_pieces_of_16_mib() {
        let hot: Vec<u64> = (4096..4096 + 16_384).collect();
        let (misses, unused) = read(&mut Regions::default(), &hot);
        assert_eq!(unused, 0);
        assert!(misses < 500, "{misses} misses for a GiB");
    }

    #[test]
    fn what_is_scattered_is_fetched_alone_once_fetching_ahead_did_not_pay() {
        let hot: Vec<u64> = (0..16_384).map(|part| part * 64).collect();
        let (misses, unused) = read(&mut Regions::default(), &hot);
        assert!(misses > 16_000, "{misses}");
        assert!(unused < 16_384, "{unused}");
    }

    #[test]
    fn pieces_that_lie_near_each_other_are_not_taken_for_a_region() {
        // An extent of 64 KiB in each 512 KiB; pieces of 256 KiB, one in each 8 MiB.
        let scattered: Vec<u64> = (0..16_384).map(|part| part * 8 + part % 7).collect();
        let pieces: Vec<u64> = (0..16_384).map(|part| part / 4 * 128 + part % 4).collect();
        for hot in [scattered, pieces] {
            let mut regions = Regions::default();
            let (_, unused) = read(&mut regions, &hot);
            assert!(unused < 3 * 16_384, "{unused}");
        }
    }

    #[test]
    fn after_scattered_extents_what_is_hot_in_one_piece_is_known_again() {
        let mut regions = Regions::default();
        let scattered: Vec<u64> = (0..16_384).map(|part| part * 8 + part % 7).collect();
        read(&mut regions, &scattered);
        let hot: Vec<u64> = (1 << 20..(1 << 20) + 16_384).collect();
        let (misses, _) = read(&mut regions, &hot);
        assert!(misses < 2_000, "{misses}");
    }

    #[test]
    fn fetching_ahead_stops_while_nobody_uses_it_and_is_tried_again() {
        let mut regions = Regions::default();
        assert!(regions.is_sound());
        let mut fetched = 0;
        for chunk in 0..100_000u32 {
            let misses = [0, 1, 9].map(|at| extents(&regions.miss(1, chunk * 16, at)));
            let ahead = misses.iter().map(|extents| extents - 1).sum();
            regions.fetched(ahead);
            fetched += u64::from(ahead);
        }
        assert!(!regions.is_sound());
        let (spent, misses) = (fetched as f32 * COST, 300_000.0);
        assert!(
            (0.9..1.1).contains(&(spent / (LOAN + misses * A_MISS))),
            "{spent}"
        );
        (0..200).for_each(|_| regions.used());
        assert!(regions.is_sound());
    }

    #[test]
    fn another_volumes_misses_do_not_count() {
        let mut regions = Regions::default();
        regions.miss(1, 0, 0);
        assert_eq!(extents(&regions.miss(2, 0, 1)), 1);
        assert_eq!(extents(&regions.miss(1, 0, 1)), 4);
    }

    #[test]
    fn memory_is_bounded() {
        let mut regions = Regions::default();
        (0..100_000).for_each(|chunk| drop(regions.miss(1, chunk * 64, 0)));
        assert_eq!(regions.recent.len(), WINDOW);
        regions.forget(1);
        assert!(regions.recent.is_empty() && regions.order.is_empty());
    }
}
