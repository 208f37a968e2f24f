//! Where requests go.

use crate::chance::Chance;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use traces::law::{Order, Zipf};

/// The offset of the next request of a number of bytes, in bytes.
pub type Aim = Arc<dyn Fn(&mut Chance, u32) -> u64 + Send + Sync>;

/// A pattern of addresses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pattern {
    /// Everywhere alike.
    Random,
    /// One after the other, over all queues; from the beginning again at the end.
    Sequential,
    /// By zipf's law with this exponent; what is often requested lies all over the range.
    Zipf(f64),
    /// The first part of the range, in per cent, gets a share of the requests, in per cent.
    Hot(f64, f64),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split(':').collect();
        let number = |text: &str, range: Range<f64>| {
            let number = text.parse::<f64>().ok();
            number.filter(|number| *number > 0.0 && range.contains(number))
        };
        let pattern = match fields[..] {
            ["random"] => Some(Self::Random),
            ["sequential"] => Some(Self::Sequential),
            ["zipf", exponent] => number(exponent, 0.0..10.0).map(Self::Zipf),
            ["hot", part, requests] => number(part, 0.0..100.0)
                .zip(number(requests, 0.0..100.0))
                .map(|(part, requests)| Self::Hot(part, requests)),
            _ => None,
        };
        pattern.ok_or_else(|| {
            format!(
                "'{text}' is no pattern: write random, sequential, zipf:EXPONENT (as zipf:0.99) or \
                 hot:PERCENT:PERCENT (hot:10:90 sends 90 % of the requests to 10 % of the range)"
            )
        })
    }
}

/// Places at which a request can begin.
struct Places {
    begin: u64,
    end: u64,
    grain: u64,
}

impl Places {
    fn count(&self, length: u32) -> u64 {
        ((self.end - self.begin).saturating_sub(u64::from(length)) / self.grain) + 1
    }

    fn offset(&self, place: u64, length: u32) -> u64 {
        self.begin + place.min(self.count(length) - 1) * self.grain
    }
}

impl Pattern {
    /// Addresses in a range of bytes, at multiples of `grain` from its beginning on. The range has room for
    /// the longest request.
    pub fn aim(self, bytes: Range<u64>, grain: u32, seed: u64) -> Aim {
        let places = Places {
            begin: bytes.start,
            end: bytes.end,
            grain: u64::from(grain),
        };
        match self {
            Self::Random => Arc::new(move |chance, length| {
                places.offset(chance.below(places.count(length)), length)
            }),
            Self::Sequential => {
                let next = AtomicU64::new(bytes.start);
                Arc::new(move |_, length| {
                    let length = u64::from(length);
                    let fits = |at: u64| {
                        if at + length <= bytes.end {
                            at
                        } else {
                            bytes.start
                        }
                    };
                    let step = |at| Some(fits(at) + length);
                    match next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) {
                        Ok(at) | Err(at) => fits(at),
                    }
                })
            }
            Self::Zipf(exponent) => {
                let all = places.count(grain);
                let law = Zipf::new(exponent, all);
                let order = Order::new(all, Chance::new(seed).below(all));
                Arc::new(move |chance, length| {
                    places.offset(order.at(law.rank(|| chance.unit())), length)
                })
            }
            Self::Hot(part, requests) => {
                let all = places.count(grain);
                let hot = ((all as f64 * part / 100.0) as u64).clamp(1, all);
                Arc::new(move |chance, length| {
                    let place = match chance.unit() * 100.0 < requests || hot == all {
                        true => chance.below(hot),
                        false => hot + chance.below(all - hot),
                    };
                    places.offset(place, length)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn offsets(pattern: &str, lengths: &[u32], count: usize) -> Vec<u64> {
        let pattern: Pattern = pattern.parse().expect("right");
        let aim = pattern.aim(MIB..5 * MIB, 4096, 7);
        let mut chance = Chance::new(3);
        let lengths = lengths.iter().cycle().take(count);
        lengths.map(|length| aim(&mut chance, *length)).collect()
    }

    #[test]
    fn every_pattern_stays_within_its_range_and_on_its_grain() {
        for pattern in ["random", "sequential", "zipf:1.2", "zipf:1", "hot:5:80"] {
            let lengths = [4096, 1 << 20];
            for (at, length) in offsets(pattern, &lengths, 20_000)
                .iter()
                .zip(lengths.iter().cycle())
            {
                assert!(
                    *at >= MIB && at + u64::from(*length) <= 5 * MIB,
                    "{pattern}: {at}"
                );
                assert!(at.is_multiple_of(4096), "{pattern}: {at}");
            }
            assert_eq!(
                offsets(pattern, &lengths, 100),
                offsets(pattern, &lengths, 100),
                "the same seed gives the same addresses"
            );
        }
    }

    #[test]
    fn sequential_goes_on_where_the_last_one_ended_and_round() {
        let all = offsets("sequential", &[4096], 1025);
        assert_eq!(all[..3], [MIB, MIB + 4096, MIB + 8192]);
        assert_eq!(all[1024], MIB);
    }

    #[test]
    fn a_hot_set_gets_its_part_of_the_requests() {
        let all = offsets("hot:10:90", &[4096], 100_000);
        let hot = all.iter().filter(|at| **at < MIB + 4 * MIB / 10).count();
        assert!((89_000..91_000).contains(&hot), "{hot}");
    }

    #[test]
    fn zipf_prefers_few_and_random_none() {
        let most = |pattern: &str| {
            let mut counts = std::collections::BTreeMap::new();
            for at in offsets(pattern, &[4096], 100_000) {
                *counts.entry(at).or_insert(0) += 1;
            }
            counts.into_values().max().unwrap_or(0)
        };
        assert!(most("zipf:0.99") > 10_000, "{}", most("zipf:0.99"));
        assert!(most("random") < 200, "{}", most("random"));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_what_to_write() {
        for wrong in [
            "",
            "zipf",
            "zipf:0",
            "zipf:x",
            "hot:10",
            "hot:0:90",
            "hot:10:100",
            "random:1",
        ] {
            let refused = wrong.parse::<Pattern>().expect_err(wrong);
            assert!(refused.contains("zipf:EXPONENT"), "{refused}");
        }
    }
}
