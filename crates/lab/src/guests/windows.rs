//! What was answered, a tenth of a second at a time: where the machine withholds a core a few times per second, for
//! milliseconds, that is in every whole second, and in few tenths.

use crate::load::Histogram;
use std::time::Duration;

/// How long a window is.
pub const WINDOW: Duration = Duration::from_millis(100);

/// Latencies by the window in which their requests were due.
pub struct Windows {
    /// Requests due earlier do not count, in nanoseconds after the start.
    from_ns: u64,
    windows: Vec<Histogram>,
}

impl Windows {
    /// For a time that counts, after one that does not.
    pub fn new(left_out: Duration, counts: Duration) -> Self {
        let windows = counts.as_nanos() / WINDOW.as_nanos();
        Self {
            from_ns: left_out.as_nanos() as u64,
            windows: vec![Histogram::default(); windows as usize],
        }
    }

    /// A request was answered that was due at this moment.
    pub fn answered(&mut self, due_ns: u64, at_ns: u64) {
        let Some(since_ns) = due_ns.checked_sub(self.from_ns) else {
            return;
        };
        let number = since_ns / WINDOW.as_nanos() as u64;
        // What is due when the time is over does not count either.
        if let Some(window) = self.windows.get_mut(number as usize) {
            window.add(at_ns.saturating_sub(due_ns));
        }
    }

    /// All of them together.
    pub fn whole(&self) -> Histogram {
        let mut all = Histogram::default();
        self.windows.iter().for_each(|window| all.merge(window));
        all
    }

    /// A latency percentile in microseconds, of each window with requests.
    pub fn percentiles_us(&self, percent: f64) -> Vec<f64> {
        let of = |window: &Histogram| window.percentile(percent) as f64 / 1e3;
        let some = self.windows.iter().filter(|window| window.count() > 0);
        some.map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_where_it_was_due() {
        let second = Duration::from_secs(1);
        let mut windows = Windows::new(second, second);
        let ms = |ms: u64| ms * 1_000_000;
        for (due, at) in [
            (999, 1000),
            (1000, 1001),
            (1099, 1150),
            (1950, 1953),
            (2000, 2001),
        ] {
            windows.answered(ms(due), ms(at));
        }
        assert_eq!(windows.whole().count(), 3, "of the second that counts");
        let longest = windows.percentiles_us(100.0);
        let near = |us: f64, ms: f64| (us / 1e3 / ms - 1.0).abs() < 0.05;
        assert!(
            longest.len() == 2 && near(longest[0], 51.0) && near(longest[1], 3.0),
            "{longest:?}"
        );
    }
}
