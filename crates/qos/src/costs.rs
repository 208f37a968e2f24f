//! The cost of operations: nanoseconds of a shard's time, by kind and size.
//!
//! A shard is **busy** while something is in progress in it; the times of what ended (`moments.rs`) add up to that. Estimates
//! follow them: means at first, and exponential moving averages in the long run. They go down whenever the shard shows
//! that it can do more, and up only while operations are held or very many are in progress: a shard that is idle half of the
//! time has not shown what it cannot do. Where classes are mixed, the sum of their times is known, and how it is divided is
//! not: classes that were seen alone keep their ratios, and others are distinguished by ticks with different mixtures.

use block::OpKind;
use units::mutation::{Mutation, is_on};

/// Size classes: up to 4 KiB, 8 KiB, ... 256 KiB, and more.
const SIZES: usize = 8;
/// Classes of operations.
pub const CLASSES: usize = 3 * SIZES;
/// Initial estimate of an operation's cost: nanoseconds, and per KiB.
const FIRST_NS: f64 = 50_000.0;
const FIRST_NS_PER_KIB: f64 = 1000.0;
/// Bounds of an estimate, in nanoseconds.
const LEAST_NS: f64 = 50.0;
const MOST_NS: f64 = 1e9;
/// Operations that an estimate remembers, of those that were seen alone and of mixed ones.
const REMEMBERED: f64 = 96.0;
const REMEMBERED_MIXED: f64 = 24.0;
/// Operations that have to be seen alone before ratios are kept by them, and how much less than others these classes follow
/// sums then.
const KNOWN: f64 = 32.0;
const TRUSTED: f64 = 0.25;
/// Part of the ordinary in which the times of their own ends count besides: in one mixture they are all that tells them apart.
const HINT: f64 = 0.05;
/// The most that one tick takes over of a new estimate.
const STEP: f64 = 0.5;

/// Kinds of operations by cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Discards or writes zeroes: its length does not count.
    Other,
}

impl Kind {
    /// The class of a host's operation; `None` for those that are never held, since they have no data and others wait for them.
    pub fn of(op: OpKind) -> Option<Self> {
        match op {
            OpKind::Read => Some(Self::Read),
            OpKind::Write => Some(Self::Write),
            OpKind::Discard | OpKind::WriteZeroes => Some(Self::Other),
            OpKind::Flush | OpKind::Status | OpKind::Changed(_) => None,
        }
    }
}

/// The class of an operation of `bytes`.
#[inline]
pub fn class(kind: Kind, bytes: u64) -> usize {
    let more = bytes.saturating_sub(1) >> 12;
    let size = match is_on(Mutation::QosSizeBlind) {
        true => 0,
        false => ((u64::BITS - more.leading_zeros()) as usize).min(SIZES - 1),
    };
    match kind {
        Kind::Read => size,
        Kind::Write => SIZES + size,
        Kind::Other => 2 * SIZES,
    }
}

/// Bytes of operations in the size that a class has.
fn bytes_of(size: usize) -> u64 {
    4096 << size
}

/// Ended operations, by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// Operations.
    pub count: u32,
    /// The time that they cost, in nanoseconds.
    pub ns: u64,
}

/// Estimates for one shard.
#[derive(Clone, Debug)]
pub struct Costs {
    ns: [f64; CLASSES],
    /// Operations that an estimate is based on: up to [`REMEMBERED`], of these alone more than [`REMEMBERED_MIXED`].
    seen: [f64; CLASSES],
}

impl Default for Costs {
    fn default() -> Self {
        let first = |class: usize| {
            let kib = if class >= 2 * SIZES {
                0
            } else {
                bytes_of(class % SIZES) / 1024
            };
            FIRST_NS + FIRST_NS_PER_KIB * kib as f64
        };
        Self {
            ns: std::array::from_fn(first),
            seen: [0.0; CLASSES],
        }
    }
}

impl Costs {
    /// Nanoseconds of a shard's time for an operation; at least 1.
    pub fn of(&self, class: usize) -> u64 {
        self.ns[class] as u64
    }

    /// Learns from what ended while everything in progress was alike. `busy`: the shard could not have done more.
    pub fn learn(&mut self, ended: &[Ended; CLASSES], busy: bool) {
        let ended = ended.iter().enumerate();
        for (at, ended) in ended.filter(|(_, ended)| ended.count > 0) {
            self.follow(at, ended, busy, REMEMBERED);
        }
    }

    /// Learns from what ended while unlike operations were in progress.
    pub fn learn_mixed(&mut self, ended: &[Ended; CLASSES], busy: bool) {
        let all = || {
            ended
                .iter()
                .enumerate()
                .filter(|(_, ended)| ended.count > 0)
        };
        let (mut expected, mut took, mut count) = (0.0, 0.0, 0.0);
        for (at, ended) in all() {
            expected += self.ns[at] * f64::from(ended.count);
            took += ended.ns as f64;
            count += f64::from(ended.count);
        }
        let all: Vec<usize> = all().map(|(at, _)| at).collect();
        let is_new = |of: &Self, at: usize| of.seen[at] < REMEMBERED_MIXED;
        if all.iter().any(|at| is_new(self, *at)) {
            for at in all {
                if is_new(self, at) {
                    self.follow(at, &ended[at], busy, REMEMBERED_MIXED);
                }
            }
            return;
        }
        for at in all.iter().copied() {
            let own = self.ns[at];
            if self.seen[at] < KNOWN {
                self.follow(at, &ended[at], busy, REMEMBERED_MIXED);
                self.ns[at] = own + (self.ns[at] - own) * HINT;
            }
        }
        let ratio = took / expected;
        if expected > 0.0 && (ratio < 1.0 || busy) {
            let step = (count / REMEMBERED).min(STEP);
            let parts = all.iter().map(|at| {
                let count = f64::from(ended[*at].count);
                self.ns[*at] * count / expected
            });
            let parts: Vec<f64> = parts.collect();
            let weights = self.weights(&all, &parts);
            for (at, weight) in all.into_iter().zip(weights) {
                let factor = 1.0 + (ratio - 1.0) * step * weight;
                let next = self.ns[at] * factor.clamp(1.0 - STEP, 1.0 + STEP);
                self.ns[at] = next.clamp(LEAST_NS, MOST_NS);
            }
        }
    }

    /// How strongly the estimate of each of these classes follows the error of their sum, of which they have these parts:
    /// all alike where all were seen alone. Else by their parts (normalised least mean squares), so that ticks of different
    /// mixtures tell them apart, and those less that were seen alone.
    fn weights(&self, classes: &[usize], parts: &[f64]) -> Vec<f64> {
        let was_alone = |at: &usize| self.seen[*at] >= KNOWN;
        if classes.iter().all(was_alone) {
            return vec![1.0; classes.len()];
        }
        let both = classes.iter().zip(parts);
        let weights: Vec<f64> = both
            .map(|(at, part)| match was_alone(at) {
                true => part * TRUSTED,
                false => *part,
            })
            .collect();
        let sum: f64 = weights.iter().zip(parts).map(|(a, b)| a * b).sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    fn follow(&mut self, at: usize, ended: &Ended, busy: bool, remembered: f64) {
        let (before, count) = (self.ns[at], f64::from(ended.count));
        let cost = (ended.ns as f64 / count).clamp(LEAST_NS, MOST_NS);
        if cost < before || busy {
            let seen = self.seen[at];
            let step = count / (seen + count);
            // The first of all says more than what was assumed.
            let most = if seen > 0.0 { STEP } else { 1.0 };
            self.ns[at] = before + (cost - before) * step.min(most);
            self.seen[at] = (seen + count).min(remembered.max(seen));
        }
    }

    /// Nanoseconds a second that a minimum takes at the size of operations that is dearest, of those that were seen:
    /// half of them read, half write. None while nothing was.
    pub fn floor(&self, min_iops: u64, min_bandwidth: u64) -> Option<u64> {
        let sizes = (0..SIZES).filter_map(|size| {
            let ns = self.mean(size)?;
            Some((rate(min_iops, min_bandwidth, bytes_of(size)) * ns) as u64)
        });
        sizes.max()
    }

    /// Operations of 4 KiB per second that the shard has shown to be able to do; none while it has shown none.
    pub fn iops(&self) -> Option<u64> {
        self.mean(0).map(|ns| (1e9 / ns) as u64)
    }

    fn mean(&self, size: usize) -> Option<f64> {
        let both = [size, SIZES + size].into_iter();
        let seen: Vec<f64> = both
            .filter(|class| self.seen[*class] > 0.0)
            .map(|class| self.ns[class])
            .collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    }
}

/// Operations a second that are guaranteed where each has `bytes`: of the minimums of operations and of bytes the one
/// that is reached first; 0 without a minimum.
pub fn rate(min_iops: u64, min_bandwidth: u64, bytes: u64) -> f64 {
    let by_bytes = min_bandwidth as f64 / bytes.max(1) as f64;
    match (min_iops, min_bandwidth) {
        (iops, 0) => iops as f64,
        (0, _) => by_bytes,
        (iops, _) => (iops as f64).min(by_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations of a class that cost so much each.
    fn ended(of: &[(Kind, u64, u32, u64)]) -> [Ended; CLASSES] {
        let mut ended = [Ended::default(); CLASSES];
        for (kind, bytes, count, ns) in of {
            let at = &mut ended[class(*kind, *bytes)];
            at.count += count;
            at.ns += u64::from(*count) * ns;
        }
        ended
    }

    #[test]
    fn sizes_are_told_apart_and_kinds_too() {
        assert_eq!(class(Kind::Read, 512), class(Kind::Read, 4096));
        assert_ne!(class(Kind::Read, 4096), class(Kind::Read, 8192));
        assert_ne!(class(Kind::Read, 4096), class(Kind::Write, 4096));
        assert_eq!(class(Kind::Write, 512 << 10), class(Kind::Write, 1 << 20));
        assert_eq!(class(Kind::Other, 1), class(Kind::Other, 1 << 30));
        assert!(class(Kind::Write, u64::MAX) < CLASSES && class(Kind::Other, 0) < CLASSES);
    }

    #[test]
    fn estimates_approach_what_operations_cost() {
        let mut costs = Costs::default();
        let each = ended(&[
            (Kind::Read, 4096, 100, 10_000),
            (Kind::Write, 256 << 10, 3, 400_000),
        ]);
        (0..400).for_each(|_| costs.learn(&each, true));
        let small = costs.of(class(Kind::Read, 4096));
        let large = costs.of(class(Kind::Write, 256 << 10));
        assert!((9_900..10_100).contains(&small), "{small}");
        assert!((399_000..401_000).contains(&large), "{large}");
        assert!((99_000..101_000).contains(&costs.iops().unwrap()));
    }

    #[test]
    fn what_an_idle_shard_does_not_do_is_no_sign_that_it_cannot() {
        let mut costs = Costs::default();
        let small = class(Kind::Read, 4096);
        let slow = ended(&[(Kind::Read, 4096, 1, 10_000_000)]);
        let before = costs.of(small);
        costs.learn(&slow, false);
        assert_eq!(costs.of(small), before);
        assert_eq!(costs.iops(), None, "nothing was shown");
        costs.learn(&slow, true);
        assert!(costs.of(small) > before);
        let fast = ended(&[(Kind::Read, 4096, 10_000, 1000)]);
        (0..30).for_each(|_| costs.learn(&fast, false));
        assert!(costs.of(small) < 1100);
        costs.learn(&ended(&[]), true);
    }

    #[test]
    fn a_floor_costs_what_its_dearest_size_does() {
        let mut costs = Costs::default();
        assert_eq!(costs.floor(1000, 0), None);
        let reads = ended(&[(Kind::Read, 4096, 1000, 10_000)]);
        (0..50).for_each(|_| costs.learn(&reads, true));
        // 10 µs each: 1,000 a second take a hundredth.
        let floor = costs.floor(1000, 0).unwrap();
        assert!((9_900_000..10_100_000).contains(&floor), "{floor}");
        assert_eq!(costs.floor(0, 0), Some(0));
        assert_eq!(rate(1000, 4096 * 500, 4096) as u64, 500);
        assert_eq!(rate(1000, 4096 * 5000, 4096) as u64, 1000);
        assert_eq!(rate(0, 4096 * 500, 8192) as u64, 250);
    }
}
