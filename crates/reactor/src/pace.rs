//! How often something may happen: a token bucket, in the form of the generic cell rate algorithm (ITU-T I.371).
//!
//! Instead of tokens it keeps the time until which past events are paid for. Time is given, so that what goes
//! by it stays deterministic.

use std::cell::Cell;

/// A burst, and then one in each interval.
#[derive(Debug)]
pub struct Pace {
    interval_ns: u64,
    /// How far into the future what happens may be paid for.
    ahead_ns: u64,
    paid_until_ns: Cell<u64>,
}

impl Pace {
    /// A burst of `burst`, at least one, and then one in `interval_ns` nanoseconds.
    pub fn new(burst: u64, interval_ns: u64) -> Self {
        Self {
            interval_ns,
            ahead_ns: burst.max(1).saturating_mul(interval_ns),
            paid_until_ns: Cell::new(0),
        }
    }

    /// Lets it happen once more now, in nanoseconds of one clock.
    ///
    /// # Errors
    /// The moment at which it may happen `together` times in a row (as often as a burst at most), when it may not now.
    pub fn take(&self, now_ns: u64, together: u64) -> Result<(), u64> {
        let until_ns = self.paid_until_ns.get().max(now_ns) + self.interval_ns;
        if until_ns <= now_ns.saturating_add(self.ahead_ns) {
            self.paid_until_ns.set(until_ns);
            return Ok(());
        }
        let more_ns = together.saturating_sub(1).saturating_mul(self.interval_ns);
        let free_ns = (until_ns - self.ahead_ns).saturating_add(more_ns);
        Err(free_ns.min(self.paid_until_ns.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn taken(pace: &Pace, now_ns: u64) -> usize {
        std::iter::from_fn(|| pace.take(now_ns, 1).ok()).count()
    }

    #[test]
    fn a_burst_then_one_an_interval() {
        let pace = Pace::new(5, MS);
        assert_eq!(taken(&pace, 0), 5);
        assert_eq!(taken(&pace, MS - 1), 0);
        assert_eq!(taken(&pace, MS), 1);
        assert_eq!(taken(&pace, 4 * MS), 3);
        assert_eq!(taken(&pace, 1000 * MS), 5, "never more than a burst");
    }

    #[test]
    fn who_waits_until_the_moment_that_was_named_may() {
        let pace = Pace::new(8, MS);
        assert_eq!(taken(&pace, 7), 8);
        for together in [1, 3, 8, 100] {
            let free_ns = pace.take(7, together).expect_err("the burst is over");
            let pace = Pace {
                paid_until_ns: pace.paid_until_ns.clone(),
                ..Pace::new(8, MS)
            };
            assert_eq!(taken(&pace, free_ns), together.min(8) as usize);
        }
    }

    #[test]
    fn at_least_one_may_happen() {
        let pace = Pace::new(0, MS);
        assert_eq!(taken(&pace, 3), 1);
        assert_eq!(taken(&pace, 3 + MS), 1);
    }
}
