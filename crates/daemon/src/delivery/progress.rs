//! Progress of a target and its retries with exponential backoff. Pure: time is passed in.

use std::time::Duration;

/// Attempts at an event before it is dropped.
const TRIES_MAX: u32 = 10;
/// Delay after the first failure, doubled with each, and its maximum.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Consecutive failures after which a target is reported as failing.
const FAILURES_TOLD: u32 = 3;

/// State of a target. Times are since the daemon's start.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of the last event that was delivered or dropped.
    pub mark: u64,
    /// Delivered events.
    pub delivered: u64,
    /// Dropped events.
    pub lost: u64,
    /// Consecutive failed attempts.
    pub failures: u32,
    /// Error of the last failed attempt.
    pub error: Option<String>,
    /// Attempts at the next event.
    tries: u32,
    /// Earliest time of the next attempt.
    not_before: Duration,
}

impl Progress {
    /// A target that receives the events after `mark`.
    pub fn from(mark: u64) -> Self {
        Self {
            mark,
            ..Self::default()
        }
    }

    /// Earliest time of the next attempt.
    pub fn due(&self) -> Duration {
        self.not_before
    }

    /// Whether it has failed for long enough to raise an alert.
    pub fn fails(&self) -> bool {
        self.failures >= FAILURES_TOLD
    }

    /// Skips events up to this one, which are not for this target.
    pub fn skip(&mut self, upto: u64) {
        self.mark = self.mark.max(upto);
    }

    /// Records the delivery of `count` events up to `upto`.
    pub fn succeeded(&mut self, upto: u64, count: u64) {
        *self = Self {
            mark: upto,
            delivered: self.delivered + count,
            lost: self.lost,
            ..Self::default()
        };
    }

    /// Records a failed attempt at `now` to deliver `count` events up to `upto`.
    pub fn failed(&mut self, upto: u64, count: u64, why: String, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        self.tries += 1;
        self.error = Some(why);
        let doubled = WAIT_MIN.saturating_mul(1 << (self.failures - 1).min(20));
        self.not_before = now + doubled.min(WAIT_MAX);
        if self.tries >= TRIES_MAX {
            self.mark = upto;
            self.lost += count;
            self.tries = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_back_off_and_finally_drop() {
        let mut progress = Progress::from(4);
        let mut now = Duration::ZERO;
        let mut waits = Vec::new();
        while progress.mark == 4 {
            progress.failed(5, 1, "refused".to_owned(), now);
            waits.push((progress.due() - now).as_secs());
            now = progress.due();
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!((progress.mark, progress.lost), (5, 1));
        assert!(progress.fails());
        // The next event is not retried more often than the previous one.
        progress.failed(6, 1, "refused".to_owned(), now);
        assert_eq!((progress.due() - now).as_secs(), 300);
        progress.succeeded(6, 1);
        assert_eq!((progress.failures, progress.error.as_ref()), (0, None));
        assert_eq!((progress.delivered, progress.lost), (1, 1));
        assert_eq!(progress.due(), Duration::ZERO);
        progress.failed(7, 1, "refused".to_owned(), now);
        assert_eq!((progress.due() - now).as_secs(), 1);
        assert!(!progress.fails());
    }

    #[test]
    fn many_failures_do_not_overflow() {
        let mut progress = Progress::default();
        for number in 0..100_000 {
            progress.failed(number, 1, String::new(), Duration::ZERO);
        }
        assert_eq!(progress.due(), WAIT_MAX);
    }
}
