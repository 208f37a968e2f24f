//! Completions in each second, and the longest time without one.

use super::histogram::Histogram;
use crate::screen::thousands;

pub const SECOND_NS: u64 = 1_000_000_000;
/// Seconds that room is made for before a run; what comes later makes its own.
const ROOM: usize = 600;

/// An answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// When it came, in nanoseconds after the beginning.
    pub at_ns: u64,
    /// When its request was due, or sent where nothing says when that is.
    pub due_ns: u64,
    /// Bytes read or written.
    pub bytes: u64,
}

/// Statistics of a second.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Of the requests that were due in it where they are due at all, else of those answered in it.
    latencies: Histogram,
    answered: u64,
    /// Bytes of what was answered.
    pub bytes: u64,
    /// Requests that were due in it and never sent.
    pub unsent: u64,
    /// The longest latency in nanoseconds.
    pub longest_ns: u64,
    /// The longest time without any answer that reached into this second, in nanoseconds, as long as
    /// it had lasted when it or the second ended.
    pub stall_ns: u64,
}

impl Second {
    /// Requests answered.
    pub fn count(&self) -> u64 {
        self.answered
    }

    /// The latencies of the requests that count in this second.
    #[cfg(test)]
    pub fn latencies(&self) -> &Histogram {
        &self.latencies
    }

    /// A latency percentile in nanoseconds.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        // A class ends beyond the greatest latency that is in it.
        self.latencies.percentile(percent).min(self.longest_ns)
    }

    fn took(&mut self, latency_ns: u64) {
        self.latencies.add(latency_ns);
        self.longest_ns = self.longest_ns.max(latency_ns);
    }

    fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.answered += other.answered;
        self.bytes += other.bytes;
        self.unsent += other.unsent;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.stall_ns = self.stall_ns.max(other.stall_ns);
    }
}

/// Second after second.
#[derive(Clone, Debug, Default)]
pub struct Series(pub Vec<Second>);

impl Series {
    fn at(&mut self, second: usize) -> &mut Second {
        if self.0.len() <= second {
            self.0.resize_with(second + 1, Second::default);
        }
        &mut self.0[second]
    }

    /// With room for a number of seconds, or the first ones of a run without an end: each takes 9 KiB.
    pub fn with_room(seconds: usize) -> Self {
        Self(vec![Second::default(); seconds.min(ROOM)])
    }

    /// A request was answered that was sent as soon as it could be.
    pub fn answered(&mut self, answer: Answer) {
        let second = self.at((answer.at_ns / SECOND_NS) as usize);
        second.answered += 1;
        second.bytes += answer.bytes;
        second.took(answer.at_ns.saturating_sub(answer.due_ns));
    }

    /// A request was answered that was due at a certain moment: its latency counts in the second of that.
    pub fn answered_due(&mut self, answer: Answer) {
        let second = self.at((answer.at_ns / SECOND_NS) as usize);
        second.answered += 1;
        second.bytes += answer.bytes;
        let due = self.at((answer.due_ns / SECOND_NS) as usize);
        due.took(answer.at_ns.saturating_sub(answer.due_ns));
    }

    /// A request was due and was not sent until the end; it took that long at least.
    pub fn unsent(&mut self, due_ns: u64, end_ns: u64) {
        let second = self.at((due_ns / SECOND_NS) as usize);
        second.unsent += 1;
        second.took(end_ns.saturating_sub(due_ns));
    }

    /// Nothing was answered between two moments.
    pub fn silent(&mut self, from_ns: u64, to_ns: u64) {
        for number in from_ns / SECOND_NS..=to_ns / SECOND_NS {
            let end = to_ns.min((number + 1) * SECOND_NS);
            let second = self.at(number as usize);
            second.stall_ns = second.stall_ns.max(end - from_ns);
        }
    }

    /// Requests of a second, 0 when it is not there.
    pub fn count(&self, second: usize) -> u64 {
        self.0.get(second).map_or(0, Second::count)
    }

    /// Adds what another lane saw.
    pub fn merge(&mut self, other: &Self) {
        for (number, second) in other.0.iter().enumerate() {
            self.at(number).merge(second);
        }
    }

    /// Leaves `seconds` whole ones, after those that are left out at the beginning.
    pub fn cut(&mut self, left_out: usize, seconds: usize) {
        self.0.drain(..left_out.min(self.0.len()));
        self.0.resize_with(seconds, Second::default);
    }

    /// All of it as if it were one second.
    pub fn whole(&self) -> Second {
        let mut all = Second::default();
        self.0.iter().for_each(|second| all.merge(second));
        all
    }

    /// Requests a second in a range of it, as far as that is there.
    pub fn iops(&self, seconds: std::ops::Range<usize>) -> f64 {
        let end = seconds.end.min(self.0.len());
        let part = self.0.get(seconds.start..end).unwrap_or_default();
        let sum: u64 = part.iter().map(Second::count).sum();
        sum as f64 / part.len().max(1) as f64
    }

    /// Requests a second over all of it.
    pub fn mean(&self) -> f64 {
        self.iops(0..self.0.len())
    }

    /// Requests a second in its last seconds.
    pub fn end(&self, seconds: usize) -> f64 {
        self.iops(self.0.len().saturating_sub(seconds)..self.0.len())
    }
}

/// A number a second, ten to a line.
pub fn rows_of_ten(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let rows = values.chunks(10).enumerate().map(|(row, values)| {
        let cells: Vec<String> = values
            .iter()
            .map(|value| format!("{:>8}", thousands(*value)))
            .collect();
        format!("  {:>4} s {}\n", row * 10, cells.concat())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_seen_in_every_second_that_it_reaches_into() {
        let mut series = Series::default();
        let ms = |count: u64| count * 1_000_000;
        series.silent(ms(100), ms(150));
        series.silent(ms(900), ms(2_300));
        let stalls: Vec<u64> = series.0.iter().map(|second| second.stall_ns).collect();
        assert_eq!(stalls, [ms(100), ms(1_100), ms(1_400)]);
        assert_eq!(series.whole().stall_ns, ms(1_400));
    }

    #[test]
    fn lanes_add_up_and_a_part_of_a_second_is_cut_off() {
        let (mut one, mut other) = (Series::default(), Series::default());
        let answer = |at_ns, latency_ns| Answer {
            at_ns,
            due_ns: at_ns - latency_ns,
            bytes: 512,
        };
        for at in [1, 2, SECOND_NS + 1] {
            one.answered(answer(1_000 + at, 1_000));
        }
        for at in [3, 2 * SECOND_NS + 1] {
            other.answered(answer(5_000_000 + at, 5_000_000));
        }
        one.merge(&other);
        one.cut(0, 2);
        let counts: Vec<u64> = one.0.iter().map(Second::count).collect();
        assert_eq!(counts, [3, 1]);
        assert_eq!((one.mean(), one.end(1), one.iops(1..9)), (2.0, 1.0, 1.0));
        assert_eq!(one.0[0].longest_ns, 5_000_000);
        assert_eq!(one.whole().percentile_ns(100.0), 5_000_000);
        assert_eq!(one.iops(7..9), 0.0);
        assert_eq!(one.whole().bytes, 4 * 512);
        one.cut(1, 1);
        assert_eq!((one.0.len(), one.mean()), (1, 1.0));
    }

    #[test]
    fn what_was_due_counts_when_it_was_and_also_when_it_was_never_sent() {
        let mut series = Series::with_room(3);
        // A server that stands still for two seconds: one request a millisecond was due.
        let ms = |count: u64| count * 1_000_000;
        series.answered_due(Answer {
            at_ns: ms(2_000),
            due_ns: 0,
            bytes: 1,
        });
        (1..1_999).for_each(|number| series.unsent(ms(number), ms(2_000)));
        let whole = series.whole();
        assert_eq!((whole.count(), whole.unsent), (1, 1_998));
        let p50 = whole.percentile_ns(50.0);
        assert!((ms(990)..ms(1_040)).contains(&p50), "{p50}");
        assert_eq!(series.count(2), 1);
        assert_eq!(series.0[0].longest_ns, ms(2_000));
    }

    #[test]
    fn a_series_has_ten_numbers_to_a_line() {
        let text = rows_of_ten((0..11).map(f64::from));
        assert_eq!(text.lines().count(), 2);
        assert_eq!(text.lines().nth(1), Some("    10 s       10"));
    }
}
