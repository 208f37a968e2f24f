//! Bytes a day that promotion may write for a volume, or for a pool.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A day, in nanoseconds.
const DAY_NS: u64 = 86_400_000_000_000;
/// Unused budget accumulates for this part of a day: three hours.
const SAVED_PART: u64 = 8;
/// And at least this many bytes, so that an extent can be written.
const SAVED_LEAST: u64 = 64 << 10;

/// An hour, in nanoseconds.
const HOUR_NS: u64 = DAY_NS / HOURS as u64;
/// Hours of a day.
const HOURS: usize = 24;

/// Bytes written in each of the last 24 hours.
#[derive(Default, Debug)]
struct Day {
    /// By the hour's number modulo 24.
    hours: [u64; HOURS],
    /// Number of the newest hour, by the loops' clock.
    newest: u64,
}

impl Day {
    /// Forgets hours that are no longer of the last 24, and returns the present one.
    fn hour(&mut self, now_ns: u64) -> &mut u64 {
        // Loops' clocks may differ slightly.
        let now = (now_ns / HOUR_NS).max(self.newest);
        let gone = (now - self.newest).min(HOURS as u64);
        (0..gone).for_each(|back| self.hours[((now - back) % HOURS as u64) as usize] = 0);
        self.newest = now;
        &mut self.hours[(now % HOURS as u64) as usize]
    }
}

/// A bucket of bytes that fills over the day: one for all shards, as promotion in one may write what another does
/// not. It begins empty: reopening a pool does not add to the budget.
#[derive(Debug)]
pub struct Budget {
    /// Bytes a day.
    daily: u64,
    left: AtomicI64,
    /// When it was filled last, by the loops' clock; 0: never.
    filled_ns: AtomicU64,
    used: AtomicU64,
    day: Mutex<Day>,
}

impl Budget {
    /// A bucket of a number of bytes per day.
    pub fn new(daily: u64) -> Self {
        Self {
            daily,
            left: AtomicI64::new(0),
            filled_ns: AtomicU64::new(0),
            used: AtomicU64::new(0),
            day: Mutex::default(),
        }
    }

    fn day(&self) -> MutexGuard<'_, Day> {
        self.day.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes a day.
    pub fn daily(&self) -> u64 {
        self.daily
    }

    /// Bytes that may be written now.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes that may be written now, at a time of the loops' clock.
    pub fn left_at(&self, now_ns: u64) -> u64 {
        self.fill(now_ns);
        self.left()
    }

    /// Bytes written in the last 24 hours, counted by whole hours.
    pub fn today(&self, now_ns: u64) -> u64 {
        let mut day = self.day();
        day.hour(now_ns);
        day.hours.iter().sum()
    }

    /// Bytes written so far.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether nothing may be written now.
    pub fn is_empty(&self, now_ns: u64) -> bool {
        self.left_at(now_ns) == 0
    }

    /// Takes bytes that are about to be written, if they may be.
    pub fn take(&self, bytes: u64, now_ns: u64) -> bool {
        self.fill(now_ns);
        let less = |left: i64| (left >= bytes as i64).then(|| left - bytes as i64);
        let taken = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, less)
            .is_ok();
        if taken {
            self.used.fetch_add(bytes, Ordering::Relaxed);
            *self.day().hour(now_ns) += bytes;
        }
        taken
    }

    /// Returns bytes that were taken and not written.
    pub fn give_back(&self, bytes: u64) {
        self.left.fetch_add(bytes as i64, Ordering::Relaxed);
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        // If they were taken before the hour began, the last day is reduced nevertheless.
        let mut day = self.day();
        let newest = day.newest;
        let mut left = bytes;
        for back in 0..(HOURS as u64).min(newest + 1) {
            let hour = &mut day.hours[((newest - back) % HOURS as u64) as usize];
            let part = left.min(*hour);
            (*hour, left) = (*hour - part, left - part);
        }
    }

    fn fill(&self, now_ns: u64) {
        let last = self.filled_ns.load(Ordering::Acquire);
        let time = match last {
            0 => 0,
            // Loops' clocks may differ slightly.
            last => now_ns.saturating_sub(last),
        };
        let bytes = u128::from(time) * u128::from(self.daily) / u128::from(DAY_NS);
        if bytes == 0 && last != 0 {
            return;
        }
        let next = now_ns.max(1);
        let turn = self
            .filled_ns
            .compare_exchange(last, next, Ordering::AcqRel, Ordering::Relaxed);
        if turn.is_ok() {
            let most = (self.daily / SAVED_PART).max(SAVED_LEAST) as i64;
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let more = |left: i64| Some(left.saturating_add(bytes).min(most.max(left)));
            let _ = self
                .left
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_fills_over_the_day_and_saves_up_three_hours() {
        let budget = Budget::new(24 * MIB);
        assert!(budget.is_empty(5) && !budget.take(1, 6));
        assert!(!budget.take(MIB, HOUR_NS - 1));
        assert!(budget.take(MIB, 5 + HOUR_NS + 10_000_000_000));
        assert!(!budget.take(64 << 10, 5 + HOUR_NS + 10_000_000_000));
        assert_eq!(budget.used(), MIB);
        assert!(!budget.is_empty(30 * HOUR_NS));
        assert_eq!(budget.left(), 3 * MIB);
        budget.give_back(MIB);
        assert_eq!((budget.left(), budget.used()), (4 * MIB, 0));
    }

    #[test]
    fn the_last_day_is_told_by_the_hour() {
        let budget = Budget::new(1 << 40);
        assert!(budget.is_empty(1));
        for hour in [3, 4, 5] {
            assert!(budget.take(hour * MIB, hour * HOUR_NS));
        }
        assert_eq!(budget.today(5 * HOUR_NS), 12 * MIB);
        assert_eq!(
            budget.today(4 * HOUR_NS),
            12 * MIB,
            "a clock that is behind"
        );
        budget.give_back(6 * MIB);
        assert_eq!(budget.today(26 * HOUR_NS), 6 * MIB);
        assert_eq!(budget.today(27 * HOUR_NS), 3 * MIB);
        assert_eq!(budget.today(28 * HOUR_NS), 0);
        assert_eq!(budget.today(1000 * HOUR_NS), 0);
        assert_eq!(budget.used(), 6 * MIB);
    }

    #[test]
    fn little_looks_lose_nothing() {
        let budget = Budget::new(24 * MIB);
        (0..=10_000).for_each(|look| budget.fill(1 + look * HOUR_NS / 10_000));
        let missing = MIB - budget.left();
        assert!(missing < 64 << 10, "{missing}");
    }

    #[test]
    fn a_small_one_allows_an_extent_in_the_end() {
        let budget = Budget::new(4096);
        assert!(budget.is_empty(1));
        assert!(budget.take(64 << 10, 1 + 17 * DAY_NS));
    }
}
