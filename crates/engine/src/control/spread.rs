//! How times and sizes of operations are spread: counts by powers of two.

use serde::{Deserialize, Serialize};

/// Bounds of times: 2^12 ns (4 µs) to 2^33 ns (8.6 s), and beyond.
pub const TIME_BOUNDS: Bounds = Bounds {
    least: 12,
    count: TIMES - 1,
};
/// Bounds of sizes: 512 bytes to 4 MiB, and beyond.
pub const SIZE_BOUNDS: Bounds = Bounds {
    least: 9,
    count: SIZES - 1,
};
/// Counts of times.
pub(crate) const TIMES: usize = 23;
/// Counts of sizes.
pub(crate) const SIZES: usize = 15;

/// Powers of two that counts are kept by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The exponent of the smallest.
    least: u32,
    count: usize,
}

impl Bounds {
    /// The bounds, in order; what is larger than the last is counted behind it.
    pub fn values(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |number| 1 << (self.least + number as u32))
    }

    /// The number of the smallest bound that a value is not larger than; `count` where none is.
    pub(crate) fn bucket(self, value: u64) -> usize {
        let exponent = u64::BITS - value.saturating_sub(1).leading_zeros();
        (exponent.saturating_sub(self.least) as usize).min(self.count)
    }
}

/// Where an operation is counted: worked out once, however often that is.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    time: usize,
    size: usize,
}

impl Cell {
    /// The size class of an operation of `len` bytes.
    pub fn of(took_ns: u64, len: u64) -> Self {
        Self {
            time: TIME_BOUNDS.bucket(took_ns),
            size: SIZE_BOUNDS.bucket(len),
        }
    }
}

/// Operations of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spread {
    /// By nanoseconds: as many as are not larger than a bound of [`TIME_BOUNDS`], and larger than the one before; at the
    /// end those that are larger than all.
    pub times: [u64; TIMES],
    /// By bytes, in the same way, of [`SIZE_BOUNDS`].
    pub sizes: [u64; SIZES],
}

impl Spread {
    /// Counts `count` operations.
    pub(crate) fn note(&mut self, at: Cell, count: u64) {
        self.times[at.time] += count;
        self.sizes[at.size] += count;
    }

    fn add(&mut self, more: &Self) {
        let times = self.times.iter_mut().zip(more.times);
        let sizes = self.sizes.iter_mut().zip(more.sizes);
        times.chain(sizes).for_each(|(sum, more)| *sum += more);
    }
}

/// Reads and writes of something since the pool was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct IoSpread {
    /// Reads.
    pub reads: Spread,
    /// Writes.
    pub writes: Spread,
}

impl IoSpread {
    /// The difference from `before`; everything if a counter decreased, as after the pool was opened again.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        let (reads, writes) = (&mut since.reads, &mut since.writes);
        let all = [(reads, &before.reads), (writes, &before.writes)];
        for (now, before) in all {
            let times = now.times.iter_mut().zip(&before.times);
            for (now, before) in times.chain(now.sizes.iter_mut().zip(&before.sizes)) {
                match now.checked_sub(*before) {
                    Some(counted) => *now = counted,
                    None => return *self,
                }
            }
        }
        since
    }

    /// Adds what another one counted.
    pub fn add(&mut self, more: &Self) {
        self.reads.add(&more.reads);
        self.writes.add(&more.writes);
    }
}

/// Where blocks are read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Memory of the engine; or nowhere, as what was never written.
    Ram,
    /// The fast tier.
    Fast,
    /// The slow tier.
    Slow,
}

/// How long reads from one source took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// By nanoseconds, as in [`Spread::times`].
    pub counts: [u64; TIMES],
    /// Nanoseconds, summed.
    pub ns: u64,
}

/// How long reads of a volume took since the pool was opened, by where the blocks came from. What drives have elsewhere
/// than in memory counts by stretches of blocks that lie together, with the wait for their turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SourceTimes {
    /// From memory.
    pub ram: Times,
    /// From the fast tier.
    pub fast: Times,
    /// From the slow tier.
    pub slow: Times,
}

impl SourceTimes {
    /// Counts `count` of them, each of which took so long.
    pub(crate) fn note(&mut self, source: Source, took_ns: u64, at: Cell, count: u64) {
        let times = match source {
            Source::Ram => &mut self.ram,
            Source::Fast => &mut self.fast,
            Source::Slow => &mut self.slow,
        };
        times.counts[at.time] += count;
        times.ns += count * took_ns;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, more: &Self) {
        let sums = [&mut self.ram, &mut self.fast, &mut self.slow];
        for (sum, more) in sums.into_iter().zip([&more.ram, &more.fast, &more.slow]) {
            let counts = sum.counts.iter_mut().zip(more.counts);
            counts.for_each(|(sum, more)| *sum += more);
            sum.ns += more.ns;
        }
    }
}

/// All that is counted of a layer's operations by times and sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spreads {
    /// Operations.
    pub io: IoSpread,
    /// Reads, by where they came from.
    pub sources: SourceTimes,
}

impl Spreads {
    /// Adds what another one counted.
    pub fn add(&mut self, more: &Self) {
        self.io.add(&more.io);
        self.sources.add(&more.sources);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_at_the_smallest_bound_that_it_is_not_larger_than() {
        for bounds in [TIME_BOUNDS, SIZE_BOUNDS] {
            let values: Vec<u64> = bounds.values().collect();
            assert_eq!(values.len(), bounds.count);
            for (number, bound) in values.iter().enumerate() {
                assert_eq!(bounds.bucket(*bound), number);
                assert_eq!(bounds.bucket(bound + 1), number + 1);
            }
            assert_eq!((bounds.bucket(0), bounds.bucket(1)), (0, 0));
            assert_eq!(bounds.bucket(u64::MAX), bounds.count);
        }
        assert_eq!(SIZE_BOUNDS.values().next(), Some(512));
        assert_eq!(SIZE_BOUNDS.values().last(), Some(4 << 20));
    }

    #[test]
    fn sums_have_what_each_has() {
        let mut sum = IoSpread::default();
        let mut one = IoSpread::default();
        one.reads.note(Cell::of(5000, 4096), 1);
        one.writes.note(Cell::of(1 << 40, 1 << 30), 1);
        sum.add(&one);
        sum.add(&one);
        assert_eq!((sum.reads.times[1], sum.reads.sizes[3]), (2, 2));
        assert_eq!(
            (sum.writes.times[TIMES - 1], sum.writes.sizes[SIZES - 1]),
            (2, 2)
        );
        let more = sum.since(&one);
        assert_eq!((more, one.since(&IoSpread::default())), (one, one));
        assert_eq!(one.since(&sum), one, "it counts anew");
        let all = sum.reads.times.iter().chain(&sum.writes.sizes);
        assert_eq!(all.sum::<u64>(), 4);
    }
}
