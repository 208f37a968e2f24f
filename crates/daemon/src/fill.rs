//! Fill level of a part of a pool, and a forecast of when it will be full at the recent rate. Pure:
//! samples and times are passed in.

use std::collections::VecDeque;

/// Minimum number of samples for a forecast.
const LEAST: usize = 12;
/// Samples of a window that are compared pairwise.
const COMPARED: usize = 60;
/// Maximum ratio between the slope of either half and that of the whole window.
const ALIKE: f64 = 4.0;
/// A forecast beyond this, in seconds, counts as not growing.
const LONGEST_S: u64 = 5 * 365 * 86_400;

/// A window of samples.
struct Window {
    /// Its length, in seconds.
    keep_s: u64,
    /// Minimum distance of samples, in seconds.
    apart_s: u64,
    /// Minimum time covered for a forecast, in seconds.
    least_s: u64,
}

const FINE: Window = Window {
    keep_s: 600,
    apart_s: 5,
    least_s: 120,
};
const COARSE: Window = Window {
    keep_s: 86_400,
    apart_s: 60,
    least_s: 1800,
};

/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    /// Seconds of a monotonic clock.
    up_s: u64,
    /// Bytes in use.
    used: u64,
}

/// Trend of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rate {
    /// Bytes per second.
    Growing(f64),
    Steady,
    Falling,
}

/// Forecast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trend {
    /// Too few samples, or no clear trend.
    Unknown,
    /// Not growing.
    Steady,
    /// Shrinking.
    Falling,
    /// It grows.
    Filling {
        /// Seconds until it is full at this rate.
        full_s: u64,
        /// Seconds over which the rate was measured.
        seen_s: u64,
    },
}

/// Fill level of a part of a pool over time, since the daemon's start.
#[derive(Default)]
pub struct Gauge {
    /// The level reached, in percent; 0: none.
    pub level: u8,
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
}

impl Gauge {
    /// Records the bytes in use. Samples older than a day are dropped.
    pub fn note(&mut self, up_s: u64, used: u64) {
        let sample = Sample { up_s, used };
        FINE.note(&mut self.fine, sample);
        COARSE.note(&mut self.coarse, sample);
    }

    /// Forecast for a capacity in bytes: the earlier of those by the last ten minutes and the last
    /// day.
    pub fn trend(&self, capacity: u64) -> Trend {
        let seen = [
            FINE.trend(&self.fine, capacity),
            COARSE.trend(&self.coarse, capacity),
        ];
        let soonest = seen.iter().min_by_key(|trend| match trend {
            Trend::Filling { full_s, .. } => *full_s,
            _ => u64::MAX,
        });
        match (soonest, seen) {
            (Some(filling @ Trend::Filling { .. }), _) => *filling,
            (_, [Trend::Unknown, coarse]) => coarse,
            (_, [fine, _]) => fine,
        }
    }
}

impl Window {
    fn note(&self, samples: &mut VecDeque<Sample>, sample: Sample) {
        let last = samples.back().map(|last| last.up_s);
        if last.is_some_and(|last| sample.up_s < last.saturating_add(self.apart_s)) {
            return;
        }
        samples.push_back(sample);
        let kept = |first: &Sample| first.up_s.saturating_add(self.keep_s) >= sample.up_s;
        while samples.front().is_some_and(|first| !kept(first)) {
            samples.pop_front();
        }
    }

    fn trend(&self, samples: &VecDeque<Sample>, capacity: u64) -> Trend {
        let (Some(first), Some(last)) = (samples.front(), samples.back()) else {
            return Trend::Unknown;
        };
        let seen_s = last.up_s - first.up_s;
        if samples.len() < LEAST || seen_s < self.least_s {
            return Trend::Unknown;
        }
        let step = samples.len().div_ceil(COMPARED);
        // The newest sample is always included.
        let thinned: Vec<Sample> = samples.iter().rev().step_by(step).rev().copied().collect();
        match pace(&thinned) {
            None => Trend::Unknown,
            Some(Rate::Steady) => Trend::Steady,
            Some(Rate::Falling) => Trend::Falling,
            Some(Rate::Growing(rate)) => {
                let full_s = (capacity.saturating_sub(last.used) as f64 / rate) as u64;
                match full_s > LONGEST_S {
                    true => Trend::Steady,
                    false => Trend::Filling { full_s, seen_s },
                }
            }
        }
    }
}

/// Theil-Sen estimator: the median slope between any two samples, in bytes per second, which is
/// robust against outliers. None without two distinct times.
fn slope(samples: &[Sample]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (index, from) in samples.iter().enumerate() {
        for to in &samples[index + 1..] {
            let (seconds, bytes) = (
                (to.up_s - from.up_s) as f64,
                to.used as f64 - from.used as f64,
            );
            slopes.push(bytes / seconds);
        }
    }
    let middle = slopes.len() / 2;
    (!slopes.is_empty()).then(|| *slopes.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Trend of samples; none if the halves contradict the whole, as after a jump or with periodic
/// writes and deletes.
fn pace(samples: &[Sample]) -> Option<Rate> {
    let (older, newer) = samples.split_at(samples.len() / 2);
    let [whole, older, newer] = [slope(samples)?, slope(older)?, slope(newer)?];
    if whole == 0.0 {
        return Some(Rate::Steady);
    }
    let agrees = |half: f64| (1.0 / ALIKE..=ALIKE).contains(&(half / whole));
    match agrees(older) && agrees(newer) {
        false => None,
        true if whole > 0.0 => Some(Rate::Growing(whole)),
        true => Some(Rate::Falling),
    }
}

/// The highest level in percent that `used` of `capacity` bytes reach; 0: none. A level reached
/// `before` holds until usage is a percentage point below it (hysteresis).
pub fn level(before: u8, used: u64, capacity: u64, levels: &[u8]) -> u8 {
    let reaches =
        |percent: u8| u128::from(used) * 100 >= u128::from(capacity) * u128::from(percent);
    if capacity == 0 {
        return 0;
    }
    let reached = levels.iter().copied().filter(|level| reaches(*level));
    let now = reached.max().unwrap_or(0);
    match levels.contains(&before) && before > now && reaches(before - 1) {
        true => before,
        false => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;
    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;

    /// The forecast after `seconds` of samples every ten seconds.
    fn after(seconds: u64, capacity: u64, used: impl Fn(u64) -> u64) -> Trend {
        let mut gauge = Gauge::default();
        for up_s in (0..=seconds).step_by(10) {
            gauge.note(up_s, used(up_s));
        }
        gauge.trend(capacity)
    }

    fn full_s(trend: Trend) -> u64 {
        match trend {
            Trend::Filling { full_s, .. } => full_s,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn steady_growth_gives_the_linear_forecast() {
        // 10 MiB per second, starting at 20 GiB.
        let used = |up_s: u64| 20 * GIB + up_s * 10 * MIB;
        for seconds in [130, 10 * MINUTE, 3 * HOUR] {
            let due = (200 * GIB - used(seconds)) / (10 * MIB);
            let trend = after(seconds, 200 * GIB, used);
            assert!(full_s(trend).abs_diff(due) <= 1, "{trend:?} for {due}");
        }
        // No time is left once it is full.
        assert_eq!(full_s(after(10 * MINUTE, 21 * GIB, used)), 0);
    }

    #[test]
    fn forecast_is_robust_against_noise() {
        let used = |up_s: u64| 20 * GIB + up_s * 10 * MIB + up_s * 7919 % 600 * MIB / 10;
        let due = (80 * GIB / (10 * MIB)) as f64;
        let found = full_s(after(HOUR, 100 * GIB + HOUR * 10 * MIB, used)) as f64;
        assert!((found / due - 1.0).abs() < 0.05, "{found} for {due}");
    }

    #[test]
    fn few_samples_give_no_forecast() {
        let used = |up_s: u64| up_s * MIB;
        assert_eq!(Gauge::default().trend(GIB), Trend::Unknown);
        assert_eq!(after(110, GIB, used), Trend::Unknown);
        // A daemon that was stalled has few samples over a long time.
        let mut gauge = Gauge::default();
        for up_s in [0, 100, 200, 300] {
            gauge.note(up_s, up_s * MIB);
        }
        assert_eq!(gauge.trend(GIB), Trend::Unknown);
    }

    #[test]
    fn constant_or_shrinking_usage_is_never_full() {
        assert_eq!(after(HOUR, GIB, |_| 5 * MIB), Trend::Steady);
        let falling = |up_s: u64| 50 * GIB - up_s * MIB;
        assert_eq!(after(HOUR, 100 * GIB, falling), Trend::Falling);
        // Occasional growth by a block would take decades.
        let slow = |up_s: u64| up_s / 30 * 4096;
        assert_eq!(after(DAY, 1000 * GIB, slow), Trend::Steady);
    }

    #[test]
    fn jump_is_not_a_trend() {
        for at in (0..10 * MINUTE).step_by(50) {
            let jump = |up_s: u64| if up_s > at { 50 * GIB } else { 10 * GIB };
            let trend = after(10 * MINUTE, 100 * GIB, jump);
            let filling = matches!(trend, Trend::Filling { .. });
            assert!(!filling, "at {at}: {trend:?}");
        }
        // A sawtooth, as with periodic writes and deletes.
        let saw = |up_s: u64| up_s % (4 * MINUTE) * 100 * MIB;
        let trend = after(10 * MINUTE, 100 * GIB, saw);
        assert!(!matches!(trend, Trend::Filling { .. }), "{trend:?}");
        // Growth that continues after a jump.
        let both = |up_s: u64| up_s * 10 * MIB + if up_s > 200 { 30 * GIB } else { 0 };
        let due = (100 * GIB - both(600)) / (10 * MIB);
        let found = full_s(after(10 * MINUTE, 100 * GIB, both));
        assert!(found.abs_diff(due) <= due / 3, "{found} for {due}");
    }

    #[test]
    fn bursts_are_averaged_over_a_day_and_dropped_after() {
        // 1 GiB every ten minutes: 144 GiB per day.
        let bursts = |up_s: u64| up_s / (10 * MINUTE) * GIB;
        let trend = after(20 * HOUR, 240 * GIB, bursts);
        let left = full_s(trend).abs_diff(20 * HOUR);
        assert!(left < HOUR, "{trend:?}");
        // No growth for a day: earlier growth does not count.
        let stopped = |up_s: u64| bursts(up_s.min(10 * HOUR));
        assert_eq!(after(35 * HOUR, 240 * GIB, stopped), Trend::Steady);
    }

    #[test]
    fn samples_are_bounded() {
        let mut gauge = Gauge::default();
        for up_s in 0..3 * DAY {
            gauge.note(up_s, up_s);
            gauge.note(up_s, up_s);
        }
        assert_eq!((gauge.fine.len(), gauge.coarse.len()), (121, 1441));
    }

    #[test]
    fn level_has_hysteresis_of_one_point() {
        let levels = [80, 90, 95];
        let mut at = 0;
        for (per_mille, due) in [
            (0, 0),
            (799, 0),
            (800, 80),
            (791, 80),
            (790, 80),
            (789, 0),
            (791, 0),
            (960, 95),
            (945, 95),
            (939, 90),
            (889, 80),
            (1200, 95),
            (0, 0),
        ] {
            at = level(at, per_mille, 1000, &levels);
            assert_eq!(at, due, "{per_mille}");
        }
        // Removed levels do not hold.
        assert_eq!(level(90, 895, 1000, &[85, 95]), 85);
        assert_eq!(level(80, 795, 1000, &[]), 0);
        assert_eq!(level(80, 0, 0, &levels), 0);
        assert_eq!(level(0, u64::MAX, u64::MAX, &levels), 95);
    }
}
