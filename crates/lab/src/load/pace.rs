//! When requests are due whose rate is given: an open loop.
//!
//! A server that falls behind does not slow the requests down. Latency counts from the moment at which a request
//! was due, so that one that had to wait for its turn is not forgotten.

use crate::chance::Chance;

/// How requests arrive.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// At equal distances
    Even,
    /// By chance, as those of many independent clients (Poisson)
    Poisson,
}

/// A rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// Requests a second.
    pub per_second: f64,
    /// How they arrive.
    pub arrivals: Arrivals,
}

/// The moments at which requests are due.
pub struct Pace {
    interval_ns: f64,
    arrivals: Arrivals,
    due_ns: f64,
}

impl Pace {
    /// One of `all` parts of a rate; their moments are between each other's.
    pub fn new(rate: Rate, part: usize, all: usize) -> Self {
        let interval_ns = 1e9 / rate.per_second;
        Self {
            interval_ns: interval_ns * all as f64,
            arrivals: rate.arrivals,
            due_ns: interval_ns * part as f64,
        }
    }

    /// A rate whose first request is due at a moment, in nanoseconds after the beginning.
    pub fn starting_at(rate: Rate, moment_ns: u64) -> Self {
        let mut pace = Self::new(rate, 0, 1);
        pace.due_ns = moment_ns as f64;
        pace
    }

    /// When the next request is due, in nanoseconds after the beginning.
    pub fn due_ns(&self) -> u64 {
        self.due_ns as u64
    }

    /// Goes on to the one after it.
    pub fn advance(&mut self, chance: &mut Chance) {
        self.due_ns += match self.arrivals {
            Arrivals::Even => self.interval_ns,
            Arrivals::Poisson => -self.interval_ns * (1.0 - chance.unit()).ln(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(arrivals: Arrivals, part: usize, all: usize) -> Vec<u64> {
        let per_second = 1_000.0;
        let mut pace = Pace::new(
            Rate {
                per_second,
                arrivals,
            },
            part,
            all,
        );
        let mut chance = Chance::new(5);
        let moments = (0..10_000).map(|_| {
            let due = pace.due_ns();
            pace.advance(&mut chance);
            due
        });
        moments.collect()
    }

    #[test]
    fn parts_take_turns_and_come_to_the_rate() {
        assert_eq!(
            moments(Arrivals::Even, 0, 1)[..3],
            [0, 1_000_000, 2_000_000]
        );
        assert_eq!(moments(Arrivals::Even, 1, 2)[..2], [1_000_000, 3_000_000]);
    }

    #[test]
    fn chance_comes_to_the_rate_too() {
        let moments = moments(Arrivals::Poisson, 0, 1);
        let mean = moments[9_999] as f64 / 9_999.0;
        assert!((970_000.0..1_030_000.0).contains(&mean), "{mean}");
        let short = moments
            .windows(2)
            .filter(|pair| pair[1] - pair[0] < 1_000_000);
        let part = short.count() as f64 / 9_999.0;
        assert!((0.61..0.65).contains(&part), "1 - 1/e are shorter: {part}");
    }
}
