//! When a set counts as warm, and how long that took.

use crate::daemon::Daemon;
use crate::demo::Shares;
use crate::failure::Result;
use crate::load::Series;
use crate::scene::POOL;
use api::v1::Counters;

/// Part of the goal that has to be reached.
const PART: f64 = 0.9;
/// Seconds for which it has to be.
const STEADY: usize = 3;
/// Of a warm set no larger part than this comes from the slow tier.
const COLD_MAX: f64 = 0.001;

/// Seconds until 90 % of `goal` requests per second are reached: the beginning of the first second that
/// has as many, and has them in the mean with the next two.
pub fn reached_after(series: &Series, goal: f64) -> Option<usize> {
    let wanted = goal * PART;
    let last = (series.0.len() + 1).saturating_sub(STEADY);
    (0..last).find(|second| {
        series.count(*second) as f64 >= wanted && series.iops(*second..*second + STEADY) >= wanted
    })
}

/// Examines a pool once a second.
pub struct Watch<'a> {
    daemon: &'a Daemon,
    first: Counters,
    last: Counters,
    /// Where the last second's reads came from.
    pub shares: Option<Shares>,
    warm: usize,
}

impl<'a> Watch<'a> {
    /// Begins to look.
    pub fn new(daemon: &'a Daemon) -> Result<Self> {
        let first = daemon.counters(POOL)?;
        Ok(Self {
            daemon,
            first,
            last: first,
            shares: None,
            warm: 0,
        })
    }

    /// A second has passed; returns whether the slow tier gets no requests any longer.
    pub fn is_warm(&mut self) -> Result<bool> {
        let now = self.daemon.counters(POOL)?;
        self.shares = Shares::between(&self.last, &now);
        let warm = self.shares.is_some_and(|shares| shares.slow <= COLD_MAX);
        self.warm = if warm { self.warm + 1 } else { 0 };
        self.last = now;
        Ok(self.warm >= STEADY)
    }

    /// Bytes that was promoted to the fast tier since it began.
    pub fn promoted(&self) -> u64 {
        self.last.promoted_bytes - self.first.promoted_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Answer;

    fn series(counts: &[u64]) -> Series {
        let mut series = Series::default();
        for (second, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                series.answered(Answer {
                    at_ns: second as u64 * 1_000_000_000,
                    ..Answer::default()
                });
            }
        }
        series.cut(0, counts.len());
        series
    }

    #[test]
    fn ninety_per_cent_count_when_they_last() {
        for (counts, after) in [
            (&[1, 2, 95, 10, 10, 90, 88, 93, 1][..], Some(5)),
            (&[100, 100, 100], Some(0)),
            (&[1, 100, 100], None),
            (&[89; 20], None),
            (&[100], None),
            (&[], None),
        ] {
            assert_eq!(reached_after(&series(counts), 100.0), after, "{counts:?}");
        }
    }
}
