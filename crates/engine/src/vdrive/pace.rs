//! The usual latency of a drive, and whether it has recently been far higher.

use std::cell::Cell;

/// Requests before there is a usual time.
const LEARN: u64 = 256;
/// A time below this is never called slow, in nanoseconds.
const FLOOR_NS: u64 = 5_000_000;
/// Weight of one request in what is recent, and in what is usual.
const RECENT: u64 = 16;
const USUAL: u64 = 1024;
/// Minimum duration, in nanoseconds.
const LONG_NS: u64 = 10_000_000_000;

/// Averages of one kind of request. A deep queue makes each request wait and a shallow one leaves
/// a fast drive idle, so the time of a request and its share of the time are both examined.
#[derive(Default)]
pub(super) struct Pace {
    requests: Cell<u64>,
    recent_ns: [Cell<u64>; 2],
    usual_ns: [Cell<u64>; 2],
    since_ns: Cell<Option<u64>>,
}

impl Pace {
    /// Counts a request that ended at `now_ns` after `took_ns`, with `depth` in flight.
    pub(super) fn note(&self, now_ns: u64, took_ns: u64, depth: usize, factor: u64) {
        let requests = self.requests.get() + 1;
        self.requests.set(requests);
        let slow = self.is_off(factor);
        let took = [took_ns, took_ns / depth.max(1) as u64];
        for (index, took) in took.into_iter().enumerate() {
            toward(&self.recent_ns[index], took, RECENT.min(requests));
            // What is slow must not become the usual.
            if !slow {
                toward(&self.usual_ns[index], took, USUAL.min(requests));
            }
        }
        let since = self.since_ns.get().unwrap_or(now_ns);
        self.since_ns.set(self.is_off(factor).then_some(since));
    }

    fn is_off(&self, factor: u64) -> bool {
        self.requests.get() > LEARN
            && self.recent_ns[0].get() > FLOOR_NS
            && (0..2).all(|index| {
                self.recent_ns[index].get() > factor.saturating_mul(self.usual_ns[index].get())
            })
    }

    /// Whether requests have taken over `factor` times the usual for long.
    pub(super) fn is_slow(&self, now_ns: u64) -> bool {
        let since = self.since_ns.get();
        since.is_some_and(|since| now_ns.saturating_sub(since) >= LONG_NS)
    }
}

fn toward(average: &Cell<u64>, value: u64, weight: u64) {
    let old = average.get();
    let step = (i128::from(value) - i128::from(old)) / i128::from(weight);
    average.set((i128::from(old) + step) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Seconds until a drive counts as slow, at `rate` requests per second.
    fn feed(pace: &Pace, from_s: u64, seconds: u64, took: u64, depth: usize) -> bool {
        let mut now = from_s * 1000 * MS;
        for _ in 0..seconds * 100 {
            now += 10 * MS;
            pace.note(now, took, depth, 10);
        }
        pace.is_slow(now)
    }

    #[test]
    fn ten_times_the_usual_for_long_is_slow_until_it_ends() {
        let pace = Pace::default();
        assert!(!feed(&pace, 0, 60, MS, 1));
        assert!(!feed(&pace, 60, 5, 30 * MS, 1), "not for long yet");
        assert!(feed(&pace, 65, 10, 30 * MS, 1));
        assert!(feed(&pace, 75, 600, 30 * MS, 1), "it does not become usual");
        assert!(!feed(&pace, 675, 5, MS, 1));
    }

    #[test]
    fn a_deep_queue_is_no_slow_drive_and_a_shallow_one_neither() {
        let pace = Pace::default();
        assert!(!feed(&pace, 0, 60, MS, 1));
        assert!(!feed(&pace, 60, 60, 64 * MS, 64));
        let pace = Pace::default();
        assert!(!feed(&pace, 0, 60, 64 * MS, 64));
        assert!(!feed(&pace, 60, 60, 12 * MS, 1));
    }
}
