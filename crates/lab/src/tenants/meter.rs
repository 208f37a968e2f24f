//! The performance of a tenant, window by window.

use crate::load::Histogram;
use serde::Serialize;

/// How long a window is, in nanoseconds.
pub const WINDOW_NS: u64 = 100_000_000;

/// Service attained by a tenant in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Requests answered.
    pub answered: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Latency in nanoseconds that half of them did not exceed.
    pub p50_ns: u64,
    /// The same of 99 in a hundred.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Requests were outstanding all the time.
    pub queued: bool,
    /// Sessions that were in their first stage at its end.
    pub starting: u32,
}

/// Counts one tenant's answers.
pub struct Meter {
    latencies: Histogram,
    all: Histogram,
    window: Window,
}

impl Meter {
    /// Nothing was answered.
    pub fn new() -> Self {
        Self {
            latencies: Histogram::default(),
            all: Histogram::default(),
            window: Window {
                queued: true,
                ..Window::default()
            },
        }
    }

    /// A request was answered.
    pub fn answered(&mut self, latency_ns: u64, bytes: u64) {
        self.window.answered += 1;
        self.window.bytes += bytes;
        self.window.max_ns = self.window.max_ns.max(latency_ns);
        self.latencies.add(latency_ns);
    }

    /// Nothing is outstanding.
    pub fn idle(&mut self) {
        self.window.queued = false;
    }

    /// A window ends; `outstanding`: requests that are, `starting`: sessions in their first stage.
    pub fn end_window(&mut self, outstanding: usize, starting: u32) -> Window {
        let next = Window {
            queued: outstanding > 0,
            ..Window::default()
        };
        let mut window = std::mem::replace(&mut self.window, next);
        // A class ends beyond the greatest latency that is in it.
        window.p50_ns = self.latencies.percentile(50.0).min(window.max_ns);
        window.p99_ns = self.latencies.percentile(99.0).min(window.max_ns);
        window.starting = starting;
        self.all.merge(&self.latencies);
        self.latencies.clear();
        window
    }

    /// All latencies of the windows that have ended.
    pub fn whole(&self) -> &Histogram {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_own_figures_and_the_whole_has_all() {
        let mut meter = Meter::new();
        (0..99).for_each(|_| meter.answered(1_000, 4096));
        meter.answered(5_000_000, 8192);
        let first = meter.end_window(3, 7);
        assert_eq!((first.answered, first.bytes), (100, 99 * 4096 + 8192));
        assert!(
            first.p99_ns < 1_100 && first.max_ns == 5_000_000,
            "{first:?}"
        );
        assert!(first.queued && first.starting == 7);
        meter.answered(9_000, 512);
        meter.idle();
        let second = meter.end_window(0, 0);
        assert_eq!((second.answered, second.p99_ns), (1, 9_000));
        assert!(!second.queued);
        let third = meter.end_window(0, 0);
        assert_eq!((third.answered, third.p99_ns, third.queued), (0, 0, false));
        assert_eq!(meter.whole().count(), 101);
    }
}
