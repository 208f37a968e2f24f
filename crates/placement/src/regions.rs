//! How much a miss fetches: more where misses are dense.
//!
//! A lone miss fetches its 64 KiB extent: a disk needs hardly longer for it than for 4 KiB. Where several
//! of the last misses were within one aligned region, all of that is fetched: 256 KiB, 1 MiB, 4 MiB, 16 MiB. Larger
//! ones that are hot all over are fetched in pieces of that size.
//!
//! As many misses in a region may come from all of it or from a few pieces. What tells them apart is how often
//! two of them are close together: of misses all over a region of 16 MiB one pair in 85 is within 256 KiB, of scattered extents
//! none, of pieces of 256 KiB that are a twentieth of it nearly all. Both are counted, and a region is fetched
//! while there are about as many close pairs as there should be.
//!
//! How much of what is fetched ahead is hot is seen in RAM: were all of it as hot as what was requested, of the extents
//! there as many of the one kind as of the other would come to be requested, each by its number. Where much fewer are, nothing more is
//! fetched ahead but on clear evidence.
//!
//! What is fetched ahead costs the disk time, and saves it a seek for each extent that hosts request, in RAM or
//! once it has risen; both are kept account of, and where the account is overdrawn nothing is fetched
//! ahead until hosts have earned it.

use std::collections::{BTreeMap, VecDeque};
use units::{CHUNK_EXTENTS, EXTENT, EXTENT_BLOCKS};

/// Minimum and maximum of remembered misses. In between: a number for each of the largest regions that the fast
/// tier has room for: then misses are dense where what hosts use fits in it.
const WINDOW: std::ops::RangeInclusive<usize> = 512..=16_384;
const A_REGION: u64 = 4;
/// Regions by level: 64 KiB << 2 * level. Those up to `FETCHED` are fetched as a whole, larger ones in pieces of that size.
const LEVELS: usize = 7;
const FETCHED: usize = 4;
/// Extents of which misses have to be among those remembered; of the larger regions it is to be sure that they are hot.
const NEEDED: [usize; LEVELS] = [1, 2, 3, 4, 6, NEVER, NEVER];
const NEVER: usize = usize::MAX;
/// Extents of the largest region that is fetched.
const LARGEST: u64 = 1 << (2 * FETCHED);
/// Close pairs that have to be expected before they are missed, and after which what is known counts half.
const KNOWN: f32 = 3.0;
const FORGET: f32 = 16.0;
/// Least and most of those expected in a region that is hot all over.
const CLOSE: std::ops::RangeInclusive<f32> = 0.4..=4.0;
/// The same for it to be sure, the pairs after which it can be, and the extents of misses that are needed then.
const SURE: std::ops::RangeInclusive<f32> = 0.7..=4.0;
const SURELY_KNOWN: f32 = 5.0;
const SURELY_NEEDED: [usize; LEVELS] = [1, 2, 3, 3, 4, 6, 8];
/// Heat of read-ahead data required for more read-ahead, and for its promotion though no host
/// asked for it, while that has room and once it is full; 1 is as hot as what was requested.
const HOT_ENOUGH: f32 = 0.3;
const HOT_AS_ASKED: f32 = 0.5;
/// Extents that were requested in RAM by which "as hot" is believed before any were, and after which what is known
/// counts half.
const BELIEF: f32 = 2.0;
const FORGET_USES: f32 = 64.0;
/// Decay per miss: half after 350. This many uses without a miss count as one: what was
/// known while another set was hot says nothing of the next.
const FADE: f32 = 1.0 - 1.0 / 512.0;
const USES_A_MISS: u32 = 64;
/// Seeks for which a disk takes as long as for reading an extent: 64 KiB at 180 MB/s, of 8 ms.
const COST: f32 = EXTENT as f32 / 180e6 / 8e-3;
/// Seeks that may be spent before any have been saved: four seconds of a disk, or what it takes to read as much as the fast
/// tier holds where that is more. Until most of it is there, hosts wait for the rest and use little of it.
const LOAN: f32 = 512.0;
/// Part of a seek that is earned by each one that was saved: for less, hosts would wait for what is fetched ahead as long as
/// for what they request.
const A_USE: f32 = 0.1;
/// Seeks that every miss may spend beyond what was saved.
const A_MISS: f32 = 0.05;
/// Balance of the account above which read-ahead is considered worth its space.
const SOUND: f32 = 64.0;

/// Extents of a chunk to fetch: bit 0 is its first 64 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetch {
    /// Chunk of the volume.
    pub chunk: u32,
    /// Extents of it.
    pub extents: u16,
}

/// Where misses were recently, and what fetching ahead has cost and saved.
pub struct Regions {
    /// Misses, by volume and extent.
    recent: BTreeMap<(u32, u64), u32>,
    order: VecDeque<(u32, u64)>,
    /// How many extents of which misses are remembered, by volume and largest region that is fetched.
    dense: BTreeMap<(u32, u64), u32>,
    /// Pairs of misses by level of the region that they share.
    pairs: [Pairs; LEVELS],
    uses: Uses,
    /// Uses since the last miss.
    unmissed: u32,
    /// Seeks that may still be spent, and at most.
    account: f32,
    loan: f32,
    /// Misses that are remembered.
    window: usize,
    /// The fast tier is full: what rises displaces something.
    full: bool,
}

/// Extents in RAM that were not requested since the fill.
#[derive(Clone, Copy, Default, Debug)]
pub struct Fresh {
    /// Those that came because they were requested.
    pub asked: usize,
    /// Those that came with them.
    pub ahead: usize,
}

/// Extents in RAM that were requested, for the first time since they came.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// All, those that had been fetched ahead, and how many of those there should be were they as hot as the others.
    all: f32,
    ahead: f32,
    expected: f32,
}

impl Uses {
    fn note(&mut self, ahead: bool, before: Fresh) {
        if before.asked == 0 || before.ahead == 0 {
            return;
        }
        self.all += 1.0;
        self.ahead += f32::from(u8::from(ahead));
        self.expected += before.ahead as f32 / (before.asked + before.ahead) as f32;
        if self.all > FORGET_USES {
            self.fade(0.5);
        }
    }

    fn fade(&mut self, to: f32) {
        self.all *= to;
        self.ahead *= to;
        self.expected *= to;
    }

    /// How hot what is fetched ahead is: 1 is as hot as what was requested.
    fn heat(&self) -> f32 {
        // Prior: as if this many uses of each had been seen before.
        let ahead = (self.ahead + BELIEF) / (self.expected + BELIEF);
        let asked = (self.all - self.ahead + BELIEF) / (self.all - self.expected + BELIEF);
        ahead / asked
    }
}

/// Result of a level's pairs about its regions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// They are not hot all over.
    Against,
    /// They may be.
    Open,
    /// They are.
    For,
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
            self.fade(0.5);
        }
    }

    fn fade(&mut self, to: f32) {
        self.expected *= to;
        self.seen *= to;
    }

    /// Whether regions seem to be hot all over.
    fn evidence(&self) -> Evidence {
        let close = self.seen / self.expected;
        if self.expected >= SURELY_KNOWN && SURE.contains(&close) {
            Evidence::For
        } else if self.expected < KNOWN || CLOSE.contains(&close) {
            Evidence::Open
        } else {
            Evidence::Against
        }
    }
}

impl Regions {
    /// Without statistics. `fast_blocks`: blocks of the fast tier.
    pub fn new(fast_blocks: u64) -> Self {
        let (loan, window) = bounds(fast_blocks);
        Self {
            recent: BTreeMap::new(),
            order: VecDeque::new(),
            dense: BTreeMap::new(),
            pairs: Default::default(),
            uses: Uses::default(),
            unmissed: 0,
            account: loan,
            loan,
            full: false,
            window,
        }
    }

    /// The fast tier has grown or shrunk to `fast_blocks`.
    pub fn resize(&mut self, fast_blocks: u64) {
        let (loan, window) = bounds(fast_blocks);
        self.account = (self.account + loan - self.loan).min(loan);
        (self.loan, self.window) = (loan, window);
    }

    /// `extent` of `chunk` is missed.
    pub fn missed(&mut self, volume: u32, chunk: u32, extent: usize) {
        let at = address(chunk, extent);
        let misses = 1 + std::mem::take(&mut self.unmissed) / USES_A_MISS;
        let left = FADE.powi(misses as i32);
        self.count_pairs(volume, at, left);
        self.remember((volume, at));
        self.uses.fade(left);
        self.account = (self.account + A_MISS).min(self.loan);
    }

    /// The extents that a miss of `extent` of `chunk` reads: at least that extent.
    pub fn fetch(&self, volume: u32, chunk: u32, extent: usize) -> Vec<Fetch> {
        let (first, count) = self.region(volume, address(chunk, extent));
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
        let pays = self.is_sound();
        for level in (1..LEVELS).rev() {
            let needed = match (self.pairs[level].evidence(), pays) {
                (Evidence::For, true) => SURELY_NEEDED[level],
                (Evidence::For, false) | (Evidence::Open, true) => NEEDED[level],
                (Evidence::Open, false) | (Evidence::Against, _) => continue,
            };
            let width = 1u64 << (2 * level.min(FETCHED));
            if self.account >= width as f32 * COST + SOUND
                && self.missed_in(volume, at, level, needed)
            {
                return (at / width * width, width);
            }
        }
        (at, 1)
    }

    /// Whether misses of this many extents of the region around one are remembered.
    fn missed_in(&self, volume: u32, at: u64, level: usize, needed: usize) -> bool {
        if level > FETCHED {
            return self.missed_around(volume, at, level) as usize >= needed;
        }
        let width = 1u64 << (2 * level);
        let start = at / width * width;
        let range = (volume, start)..(volume, start + width);
        self.recent.range(range).take(needed).count() == needed
    }

    /// Extents of a region larger than those that are fetched of which misses are remembered.
    fn missed_around(&self, volume: u32, at: u64, level: usize) -> u32 {
        let width = 1u64 << (2 * (level - FETCHED));
        let start = at / LARGEST / width * width;
        let within = self.dense.range((volume, start)..(volume, start + width));
        within.map(|(_, count)| count).sum()
    }

    /// Counts the pairs that a miss makes with those before it.
    fn count_pairs(&mut self, volume: u32, at: u64, left: f32) {
        let mut others = [0u32; LEVELS];
        let start = at / LARGEST * LARGEST;
        let near = self
            .recent
            .range((volume, start)..(volume, start + LARGEST));
        let mut known = 0;
        for other in near.map(|((_, other), _)| *other) {
            if other == at {
                known = 1;
                continue;
            }
            let shared = |level: &usize| other >> (2 * level) == at >> (2 * level);
            let levels = (1..=FETCHED).filter(shared);
            levels.for_each(|level| others[level] += 1);
        }
        for (level, others) in others.iter_mut().enumerate().skip(FETCHED + 1) {
            *others = self.missed_around(volume, at, level) - known;
        }
        for (level, pairs) in self.pairs.iter_mut().enumerate().skip(2) {
            let close = 3.0 / ((1u32 << (2 * level)) - 1) as f32;
            pairs.fade(left);
            pairs.note(others[level] as f32 * close, others[1] as f32);
        }
    }

    fn remember(&mut self, miss: (u32, u64)) {
        let count = self.recent.entry(miss).or_default();
        *count += 1;
        if *count == 1 {
            *self.dense.entry(around(miss)).or_default() += 1;
        }
        self.order.push_back(miss);
        while self.order.len() > self.window
            && let Some(oldest) = self.order.pop_front()
        {
            if lower(&mut self.recent, oldest) {
                lower(&mut self.dense, around(oldest));
            }
        }
    }

    /// A host uses an extent, wherever it is.
    #[inline]
    pub fn seen(&mut self) {
        self.unmissed = self.unmissed.saturating_add(1);
    }

    /// Records read-ahead of a number of extents.
    pub fn fetched(&mut self, extents: u32) {
        self.account -= extents as f32 * COST;
    }

    /// A host requested an extent in RAM, for the first time since the fill; it had been read `ahead`, or requested.
    /// `before`: those that there were until then, with it.
    pub fn used(&mut self, ahead: bool, before: Fresh) {
        self.uses.note(ahead, before);
        if ahead {
            self.saved();
        }
    }

    /// A host requested an extent that was being read ahead.
    pub fn saved(&mut self) {
        self.account = (self.account + A_USE).min(self.loan);
    }

    /// Whether what was to be fetched ahead still is, as far as is known by now.
    pub fn goes_on(&self) -> bool {
        let evidence = |pairs: &Pairs| pairs.evidence() == Evidence::For;
        self.is_sound() || self.pairs.iter().skip(2).any(evidence)
    }

    /// Says whether the fast tier has no room for more unless something leaves it.
    pub fn tier_is_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Whether what is fetched ahead comes to be used, as far as is known: then it is worth being kept
    /// beyond its time in RAM.
    pub fn is_sound(&self) -> bool {
        let wanted = match self.full {
            true => HOT_AS_ASKED,
            false => HOT_ENOUGH,
        };
        self.uses.heat() >= wanted
    }

    /// Forgets a volume.
    pub fn forget(&mut self, volume: u32) {
        self.recent.retain(|key, _| key.0 != volume);
        self.order.retain(|key| key.0 != volume);
        self.dense.retain(|key, _| key.0 != volume);
    }
}

/// The largest region that is fetched around an extent.
fn around((volume, at): (u32, u64)) -> (u32, u64) {
    (volume, at / LARGEST)
}

/// Counts one less; true when none is left.
fn lower(counts: &mut BTreeMap<(u32, u64), u32>, key: (u32, u64)) -> bool {
    let Some(count) = counts.get_mut(&key) else {
        return false;
    };
    *count -= 1;
    let none = *count == 0;
    if none {
        counts.remove(&key);
    }
    none
}

/// Seeks that may be spent beforehand, and misses that are remembered.
fn bounds(fast_blocks: u64) -> (f32, usize) {
    let extents = fast_blocks / EXTENT_BLOCKS as u64;
    let window = (extents / LARGEST * A_REGION) as usize;
    let window = window.clamp(*WINDOW.start(), *WINDOW.end());
    (LOAN.max(extents as f32 * COST), window)
}

fn address(chunk: u32, extent: usize) -> u64 {
    u64::from(chunk) * CHUNK_EXTENTS as u64 + extent as u64
}

#[cfg(test)]
mod tests;
