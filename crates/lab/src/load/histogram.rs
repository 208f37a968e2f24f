//! Latencies in classes, each a 32nd of an octave wide: a percentile is right to three per cent.

/// Classes of an octave.
const FINE: u64 = 32;
const FINE_BITS: u32 = FINE.trailing_zeros();
/// All of them. The last one takes what is longer than 18 minutes, in nanoseconds.
const CLASSES: usize = (40 - FINE_BITS as usize + 1) * FINE as usize;

/// Counts of latencies.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; CLASSES].into(),
        }
    }
}

fn class(value: u64) -> usize {
    if value < FINE {
        return value as usize;
    }
    let shift = value.ilog2() - FINE_BITS;
    (u64::from(shift) * FINE + (value >> shift)) as usize
}

/// The greatest value of a class.
fn greatest(class: usize) -> u64 {
    let class = class as u64;
    if class < FINE {
        return class;
    }
    let shift = class / FINE - 1;
    ((class - shift * FINE + 1) << shift) - 1
}

impl Histogram {
    /// Counts a latency.
    pub fn add(&mut self, value: u64) {
        self.counts[class(value).min(CLASSES - 1)] += 1;
    }

    /// Counts all that another one has.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Counts from the beginning.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// A percentile; 0 without values.
    pub fn percentile(&self, percent: f64) -> u64 {
        let all = self.count();
        let wanted = (all as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        });
        found.map_or(0, greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_and_are_narrow() {
        let values = (0..200).chain((1..50).map(|n| n * 977_777));
        for value in values {
            let top = greatest(class(value));
            assert!(top >= value && top - value <= value / FINE, "{value} {top}");
            assert_eq!(class(top), class(value), "{value}");
            assert_eq!(class(top + 1), class(value) + 1, "{value}");
        }
    }

    #[test]
    fn what_takes_longest_is_counted_too() {
        let mut histogram = Histogram::default();
        histogram.add(u64::MAX);
        assert_eq!(
            (histogram.count(), histogram.percentile(50.0) >> 39),
            (1, 1)
        );
    }

    #[test]
    fn percentiles_are_of_all_that_was_merged() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        assert_eq!(one.percentile(99.0), 0);
        (1..=98).for_each(|_| one.add(10));
        (1..=2).for_each(|_| other.add(1_000_000));
        one.merge(&other);
        assert_eq!((one.count(), one.percentile(98.0)), (100, 10));
        let p99 = one.percentile(99.0);
        assert!((1_000_000..1_032_000).contains(&p99), "{p99}");
    }
}
