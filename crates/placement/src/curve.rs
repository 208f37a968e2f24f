//! The miss-ratio curve of the current traffic: the share of uses that a tier of any size would miss.
//!
//! Blocks are sampled by their hash, as many as are to be tracked at most, and the distances between
//! uses of the sampled ones stand for all: C. A. Waldspurger, N. Park, A. Garthwaite, I. Ahmad, "Efficient MRC
//! Construction with SHARDS", FAST 2015, the variant of fixed size with its adjustment. While there
//! are few blocks all are tracked; with more the rate falls by itself. The curve is that of LRU.

use std::collections::BinaryHeap;
use units::hash::{Table, mix};

/// Groups of distances in a doubling.
const STEPS: usize = 16;
/// Groups: distances below 16 exactly, and then up to 2^48.
const GROUPS: usize = STEPS * 45;

/// Uses by how many other blocks came between, of a sample of the blocks.
#[derive(Clone)]
pub(crate) struct Counts {
    /// Blocks with smaller hashes are tracked.
    below: u64,
    /// Uses by distance, as many as at the rate of now.
    uses: Vec<f32>,
    /// Uses that were the first.
    first: f32,
    /// All uses, sampled or not.
    all: u64,
    /// Those that should have been sampled, at the rate of now.
    expected: f64,
    noted: u64,
    /// Uses that were sampled.
    pub sampled: u64,
}

impl Counts {
    fn new(below: u64) -> Self {
        Self {
            below,
            uses: vec![0.0; GROUPS],
            first: 0.0,
            all: 0,
            expected: 0.0,
            noted: 0,
            sampled: 0,
        }
    }

    /// How many uses there were.
    pub fn uses(&self) -> u64 {
        self.all
    }

    fn rate(&self) -> f64 {
        self.below as f64 / u64::MAX as f64
    }

    fn expected_now(&self) -> f64 {
        self.expected + (self.all - self.noted) as f64 * self.rate()
    }

    /// Blocks with hashes from `below` on are tracked no more.
    fn lower(&mut self, below: u64) {
        let kept = below as f64 / self.below as f64;
        self.expected = self.expected_now() * kept;
        self.noted = self.all;
        self.below = below;
        self.uses.iter_mut().for_each(|uses| *uses *= kept as f32);
        self.first *= kept as f32;
    }

    /// As [`Curve::miss_ratio`].
    pub fn miss_ratio(&self, blocks: u64) -> f64 {
        let expected = self.expected_now();
        if expected <= 0.0 {
            return 1.0;
        }
        let blocks = blocks as f64;
        let mut hits = 0.0;
        let mut seen = f64::from(self.first);
        for (group, uses) in self.uses.iter().enumerate() {
            let (low, high) = (start(group), start(group + 1));
            let share = ((blocks - low) / (high - low)).clamp(0.0, 1.0);
            hits += f64::from(*uses) * share;
            seen += f64::from(*uses);
        }
        // Hot blocks that are in the sample by chance, or are not, are set right where they count: as hits.
        if blocks >= 1.0 {
            hits += expected - seen;
        }
        (1.0 - hits / expected).clamp(0.0, 1.0)
    }
}

/// The curve of LRU, from a sample of the blocks that are used.
pub struct Curve {
    counts: Counts,
    samples: usize,
    /// Where in the order of uses a tracked block was used last.
    places: Table<u64, u32>,
    /// The tracked blocks, those with the largest hashes first.
    largest: BinaryHeap<(u64, u64)>,
    order: Order,
}

impl Curve {
    /// Of at most so many blocks at a time, at least one: 8,192 keep the error below 0.01 or so. Each takes some 60
    /// bytes.
    pub fn new(samples: usize) -> Self {
        Self::sampling(samples, 1.0)
    }

    /// The same, with a share of the blocks at most, more than 0 and at most 1: of a few blocks that are used all
    /// the time not each use has to be looked up.
    pub fn sampling(samples: usize, share: f64) -> Self {
        let samples = samples.max(1);
        Self {
            counts: Counts::new((u64::MAX as f64 * share) as u64),
            samples,
            places: Table::with_capacity(samples + 1),
            largest: BinaryHeap::with_capacity(samples + 1),
            order: Order::new(samples),
        }
    }

    /// A block is used: the number has to be the same for the same block of the same volume.
    #[inline]
    pub fn used(&mut self, block: u64) {
        self.note(block, mix(block), false);
        self.count(1);
    }

    /// Records uses of blocks, of which a sample is kept.
    #[inline]
    pub(crate) fn count(&mut self, blocks: u64) {
        self.counts.all += blocks;
    }

    /// Looks a block up that is used, or written, if it is of the sample: a write waits for no slow tier wherever the block
    /// is. `hash`: what [`mix`] makes of the number. The use is counted by itself.
    #[inline]
    pub(crate) fn note(&mut self, block: u64, hash: u64, write: bool) {
        if hash < self.counts.below {
            self.looked_up(block, hash, write);
        }
    }

    /// The share of the uses that a tier of this many blocks would have missed; 1 when nothing was used.
    pub fn miss_ratio(&self, blocks: u64) -> f64 {
        self.counts.miss_ratio(blocks)
    }

    /// How many different blocks were used, about.
    pub fn blocks(&self) -> u64 {
        (self.places.len() as f64 / self.rate()) as u64
    }

    /// The share of the blocks that is sampled.
    pub fn rate(&self) -> f64 {
        self.counts.rate()
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Begins to count again; what was used stays known. True when most of the tracked blocks were used since this was
    /// done last: otherwise others should be tracked in their place.
    pub(crate) fn count_anew(&mut self) -> bool {
        self.counts = Counts::new(self.counts.below);
        let old = self.order.mark();
        2 * old as usize <= self.places.len()
    }

    fn looked_up(&mut self, block: u64, hash: u64, write: bool) {
        self.counts.sampled += 1;
        if self.order.is_full() {
            self.order.compact(&mut self.places);
        }
        let place = self.order.push(block);
        let before = self.places.insert(block, place);
        match before {
            _ if write => self.counts.uses[0] += 1.0,
            Some(before) => {
                let distance = self.order.since(before);
                // In blocks of all, not of the sample: the rate is another one later.
                let distance = f64::from(distance) / self.rate();
                self.counts.uses[group(distance as u64)] += 1.0;
            }
            None => self.counts.first += 1.0,
        }
        match before {
            Some(before) => self.order.clear(before),
            None => {
                self.largest.push((hash, block));
                if self.places.len() > self.samples {
                    self.lower();
                }
            }
        }
    }

    /// Lowers the rate until a block less is tracked.
    fn lower(&mut self) {
        let Some((hash, block)) = self.largest.pop() else {
            return;
        };
        if let Some(place) = self.places.remove(&block) {
            self.order.clear(place);
        }
        self.counts.lower(hash);
    }
}

/// The group of a distance.
fn group(distance: u64) -> usize {
    match distance {
        0..16 => distance as usize,
        _ => {
            let doubling = distance.ilog2();
            let step = distance >> (doubling - 4) & 15;
            (((doubling - 3) as usize) * STEPS + step as usize).min(GROUPS - 1)
        }
    }
}

/// The least distance of a group.
fn start(group: usize) -> f64 {
    match group {
        0..16 => group as f64,
        _ => {
            let (doubling, step) = (group / STEPS + 3, group % STEPS);
            (16 + step) as f64 * 2f64.powi(doubling as i32 - 4)
        }
    }
}

/// The order of the last uses of the tracked blocks: how many are between two of them in O(log n).
struct Order {
    /// Sums of the places in use, as P. M. Fenwick has them.
    sums: Vec<u32>,
    blocks: Vec<Option<u64>>,
    next: u32,
    /// Places in use.
    used: u32,
    /// Places before this one were given before the mark.
    marked: u32,
}

impl Order {
    fn new(samples: usize) -> Self {
        let places = (samples + 2) * 4;
        Self {
            sums: vec![0; places + 1],
            blocks: vec![None; places],
            next: 0,
            used: 0,
            marked: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.next as usize == self.blocks.len()
    }

    fn push(&mut self, block: u64) -> u32 {
        let place = self.next;
        self.next += 1;
        self.blocks[place as usize] = Some(block);
        self.used += 1;
        self.add(place, 1);
        place
    }

    fn clear(&mut self, place: u32) {
        if self.blocks[place as usize].take().is_some() {
            self.used -= 1;
            self.add(place, u32::MAX);
        }
    }

    /// Adds to one place; `u32::MAX` takes one away.
    fn add(&mut self, place: u32, one: u32) {
        let mut at = place as usize + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = sum.wrapping_add(one);
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, place: u32) -> u32 {
        let mut at = place as usize + 1;
        let mut sum = 0u32;
        while at > 0 {
            sum = sum.wrapping_add(self.sums[at]);
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Marks this moment; says how many places are in use that were given before the last mark.
    fn mark(&mut self) -> u32 {
        let old = self
            .marked
            .checked_sub(1)
            .map_or(0, |last| self.up_to(last));
        self.marked = self.next;
        old
    }

    /// Places in use after one and before the newest.
    fn since(&self, before: u32) -> u32 {
        self.used - self.up_to(before) - 1
    }

    /// Compacts the used part, so that there is room again.
    fn compact(&mut self, places: &mut Table<u64, u32>) {
        self.marked = self
            .marked
            .checked_sub(1)
            .map_or(0, |last| self.up_to(last));
        let blocks: Vec<u64> = self.blocks.iter_mut().filter_map(Option::take).collect();
        self.sums.iter_mut().for_each(|sum| *sum = 0);
        (self.next, self.used) = (0, 0);
        for block in blocks {
            let place = self.push(block);
            places.insert(block, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_their_starts_agree() {
        for distance in (0..4096).chain((1..33).map(|shift| 12_345 << shift)) {
            let group = group(distance);
            assert!(start(group) <= distance as f64, "{distance}");
            assert!(start(group + 1) > distance as f64, "{distance}");
        }
    }

    #[test]
    fn a_loop_misses_everything_until_all_of_it_fits() {
        let mut curve = Curve::new(64);
        for use_ in 0..200_000u64 {
            curve.used(use_ % 10_000);
        }
        assert!(curve.rate() < 0.02, "{}", curve.rate());
        assert!(curve.miss_ratio(7_000) > 0.8);
        assert!(curve.miss_ratio(13_000) < 0.2);
    }

    #[test]
    fn what_is_written_never_waits_and_is_there_for_reads() {
        let mut curve = Curve::new(64);
        (0..10u64).for_each(|block| {
            curve.note(block, mix(block), true);
            curve.count(1);
        });
        assert_eq!(curve.miss_ratio(1), 0.0);
        (0..10u64).for_each(|block| curve.used(block));
        assert_eq!(curve.miss_ratio(10), 0.0);
        assert_eq!(curve.miss_ratio(9), 0.5);
        assert_eq!((curve.counts().uses(), curve.counts().sampled), (20, 20));
    }

    #[test]
    fn a_sample_of_few_blocks_tells_of_all() {
        let mut curve = Curve::sampling(8192, 1.0 / 16.0);
        for use_ in 0..800_000u64 {
            curve.used(mix(use_) % 65_536);
        }
        let sampled = curve.counts().sampled;
        assert!(sampled < 60_000, "{sampled}");
        let seen = curve.miss_ratio(32_768);
        // The first use of each block misses, too.
        assert!((seen - 0.54).abs() < 0.05, "{seen}");
    }

    #[test]
    fn what_is_counted_anew_knows_what_was_used_before() {
        let mut curve = Curve::new(64);
        let all =
            |curve: &mut Curve, from: u64| (from..from + 30).for_each(|block| curve.used(block));
        all(&mut curve, 0);
        assert!(curve.count_anew());
        // Some of this is after the places were closed up.
        (0..30).for_each(|_| all(&mut curve, 0));
        assert_eq!((curve.miss_ratio(30), curve.miss_ratio(29)), (0.0, 1.0));
        assert!(curve.count_anew());
        (100..120).for_each(|block| curve.used(block));
        assert!(
            !curve.count_anew(),
            "most of what is tracked is not used any more"
        );
    }

    #[test]
    fn few_blocks_are_tracked_exactly() {
        let mut curve = Curve::new(64);
        for use_ in 0..1_000u64 {
            curve.used(use_ % 10);
        }
        assert_eq!(curve.miss_ratio(9), 1.0);
        assert!((curve.miss_ratio(10) - 0.01).abs() < 1e-6);
        assert_eq!(Curve::new(8).miss_ratio(100), 1.0);
    }

    #[test]
    fn uniform_use_misses_what_does_not_fit() {
        let mut curve = Curve::new(2048);
        for use_ in 0..400_000u64 {
            curve.used(mix(use_) % 40_000);
        }
        for (blocks, missed) in [(10_000, 0.78), (20_000, 0.55), (30_000, 0.32)] {
            let seen = curve.miss_ratio(blocks);
            assert!((seen - missed).abs() < 0.05, "{blocks}: {seen}");
        }
    }
}
