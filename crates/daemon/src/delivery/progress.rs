//! How far a target was told, and when it is tried again. Pure: time is given.

use std::time::Duration;

/// Tries of the same event before it is given up.
const TRIES_MAX: u32 = 10;
/// Wait after the first failure, doubled with each, up to the most.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Failures in a row after which it is said that a target does not answer.
const FAILURES_TOLD: u32 = 3;

/// How a target does. Moments are since the daemon was started.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of the last event that it was told of, or that was given up.
    pub mark: u64,
    /// Events that were delivered.
    pub delivered: u64,
    /// Events that were given up.
    pub lost: u64,
    /// Tries in a row that failed.
    pub failures: u32,
    /// Why the last one did.
    pub error: Option<String>,
    /// Tries of what is next.
    tries: u32,
    /// Nothing is tried before.
    not_before: Duration,
}

impl Progress {
    /// One that is to be told of what comes after an event.
    pub fn from(mark: u64) -> Self {
        Self {
            mark,
            ..Self::default()
        }
    }

    /// When it may be tried.
    pub fn due(&self) -> Duration {
        self.not_before
    }

    /// Whether it fails for so long that somebody should look.
    pub fn fails(&self) -> bool {
        self.failures >= FAILURES_TOLD
    }

    /// Nothing up to this event is for it.
    pub fn skip(&mut self, upto: u64) {
        self.mark = self.mark.max(upto);
    }

    /// So many events up to one were delivered.
    pub fn succeeded(&mut self, upto: u64, count: u64) {
        *self = Self {
            mark: upto,
            delivered: self.delivered + count,
            lost: self.lost,
            ..Self::default()
        };
    }

    /// A try at `now` to deliver so many events up to one failed.
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
    fn it_is_tried_again_later_and_later_and_given_up_at_last() {
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
        // The next one is not tried more often than the one before.
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
    fn very_many_failures_do_not_overflow() {
        let mut progress = Progress::default();
        for number in 0..100_000 {
            progress.failed(number, 1, String::new(), Duration::ZERO);
        }
        assert_eq!(progress.due(), WAIT_MAX);
    }
}
