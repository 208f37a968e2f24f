//! Latency and size histograms of a step: kept as counts instead of percentiles, so that steps can
//! be summed. Pure functions.
//!
//! 76 counts in sequence: latencies and sizes of reads, then of writes (`engine::IoSpread`). Each
//! has 12 bits, packed in pairs into three bytes: exact up to 255, beyond that with a relative
//! error of 1/256.

use super::record::Payload;
use engine::{Bounds, IoSpread, SIZE_BOUNDS, Spread, TIME_BOUNDS};

/// Mantissa bits of a count.
const FRACTION: u32 = 7;
const LARGEST: u64 = 0xfff;

/// Histograms of a step.
pub type Counts = IoSpread;

/// Encodes a count in 12 bits.
fn shorten(count: u64) -> u16 {
    let length = u64::BITS - count.leading_zeros();
    let mut shift = length.saturating_sub(FRACTION + 1);
    let half = (1u64 << shift) >> 1;
    let mut fraction = count.saturating_add(half) >> shift;
    if fraction >> (FRACTION + 1) > 0 {
        fraction >>= 1;
        shift += 1;
    }
    let short = match shift {
        0 => fraction,
        shift => (u64::from(shift) << FRACTION) + fraction,
    };
    short.min(LARGEST) as u16
}

/// Decodes a count, approximately.
fn lengthen(short: u16) -> u64 {
    let (exponent, fraction) = (u32::from(short >> FRACTION), u64::from(short & 0x7f));
    match exponent {
        0 | 1 => u64::from(short),
        exponent => (fraction + (1 << FRACTION)) << (exponent - 1),
    }
}

fn all(counts: &mut Counts) -> impl Iterator<Item = &mut u64> {
    let Counts { reads, writes } = counts;
    [reads, writes]
        .into_iter()
        .flat_map(|spread| spread.times.iter_mut().chain(&mut spread.sizes))
}

impl Payload for Counts {
    const BYTES: usize = 120;

    fn put(&self, bytes: &mut [u8]) {
        let mut counts = *self;
        let short: Vec<u16> = all(&mut counts).map(|count| shorten(*count)).collect();
        for (pair, place) in short.chunks(2).zip(bytes.chunks_exact_mut(3)) {
            let second = pair.get(1).copied().unwrap_or(0);
            let both = u32::from(pair[0]) | u32::from(second) << 12;
            place.copy_from_slice(&both.to_le_bytes()[..3]);
        }
    }

    fn get(bytes: &[u8]) -> Self {
        let pairs = bytes.chunks_exact(3).flat_map(|place| {
            let both = u32::from_le_bytes([place[0], place[1], place[2], 0]);
            [both & 0xfff, both >> 12]
        });
        let mut counts = Self::default();
        for (count, short) in all(&mut counts).zip(pairs) {
            *count = lengthen(short as u16);
        }
        counts
    }
}

/// Quantile of a histogram, linearly interpolated between bounds; nothing if it is empty. Values
/// beyond the last bound count as that bound.
fn quantile(counts: &[u64], bounds: Bounds, share: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    let mut rest = share * total as f64;
    let mut below = 0.0;
    for (count, bound) in counts.iter().zip(bounds.values()) {
        let (count, bound) = (*count as f64, bound as f64);
        if count > 0.0 && rest <= count {
            return Some(below + (bound - below) * rest / count);
        }
        rest -= count;
        below = bound;
    }
    (total > 0).then_some(below)
}

/// Latency quantile of operations, in seconds.
pub fn time(spread: &Spread, share: f64) -> Option<f64> {
    share_of_times(&spread.times, share)
}

/// Latency quantile of a histogram of times, in seconds.
pub fn share_of_times(counts: &[u64], share: f64) -> Option<f64> {
    quantile(counts, TIME_BOUNDS, share).map(|ns| ns / 1e9)
}

/// Median size in bytes, rounded up to a bound.
pub fn usual_size(spread: &Spread) -> Option<f64> {
    let total: u64 = spread.sizes.iter().sum();
    let mut seen = 0;
    let mut each = spread.sizes.iter().zip(SIZE_BOUNDS.values());
    let found = each.find(|(count, _)| {
        seen += **count;
        seen * 2 >= total
    });
    let last = SIZE_BOUNDS.values().last().unwrap_or(0);
    (total > 0).then(|| found.map_or(last, |(_, bound)| bound) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::{decode, encode};

    #[test]
    fn counts_have_a_relative_error_of_1_in_256() {
        for count in 0..=255 {
            assert_eq!(lengthen(shorten(count)), count);
        }
        let mut before = 0;
        for power in 0..36 {
            for count in [1u64, 3, 5, 7].map(|odd| (odd << power) - 1) {
                let told = lengthen(shorten(count));
                assert!(told.abs_diff(count) * 256 <= count, "{count} as {told}");
            }
            assert!(lengthen(shorten(1 << power)) > before);
            before = 1 << power;
        }
        assert!(lengthen(shorten(u64::MAX)) > 1 << 36);
    }

    #[test]
    fn counts_round_trip() {
        let mut counts = Counts::default();
        for (number, count) in all(&mut counts).enumerate() {
            *count = number as u64 + 1;
        }
        assert_eq!(all(&mut counts).count(), 76);
        let record = encode(3, 9, &counts);
        assert_eq!(record.len(), 128);
        assert_eq!(decode(3, 9, &record), Some(counts));
        assert_eq!(decode::<Counts>(3, 8, &record), None);
    }

    #[test]
    fn percentiles_of_merged_steps_cover_all_operations() {
        // 990 of 3 µs in one step, 10 of 100 ms in another: only the sum has its p99 between 2 and
        // 4 µs.
        let mut first = Counts::default();
        first.reads.times[0] = 990;
        let mut second = Counts::default();
        second.reads.times[15] = 10;
        let mut both = first;
        both.add(&second);
        assert_eq!(time(&both.reads, 0.99), Some(4096e-9));
        let last = time(&both.reads, 0.999).unwrap();
        assert!((0.067..0.135).contains(&last), "{last}");
        assert_eq!(time(&both.writes, 0.5), None);
        let half = time(&first.reads, 0.5).unwrap();
        assert!((half - 2048e-9).abs() < 1e-12, "{half}");
        let mut slow = Spread::default();
        slow.times[22] = 1;
        assert_eq!(time(&slow, 0.5), Some(8.589934592));
    }

    #[test]
    fn usual_size_is_a_median_bound() {
        let mut spread = Spread::default();
        assert_eq!(usual_size(&spread), None);
        spread.sizes[3] = 10;
        spread.sizes[8] = 9;
        assert_eq!(usual_size(&spread), Some(4096.0));
        spread.sizes[8] = 11;
        assert_eq!(usual_size(&spread), Some(131_072.0));
    }
}
