//! The rate of a job from its recent progress, without the time in which it was paused. Pure: the caller passes the time.

/// A rate covers at least this many of the last seconds, and at most twice as many.
const WINDOW_S: f64 = 10.0;

/// A moment: seconds that the job was at work, and bytes done then.
type Mark = (f64, u64);

/// The pace of one job.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The last time that it was examined: seconds since it began.
    looked_s: f64,
    /// Seconds of those in which it was at work.
    worked_s: f64,
    /// Between them and now is what the rate is of.
    marks: [Mark; 2],
    /// Bytes that were done before it began.
    first: u64,
}

impl Pace {
    /// For a job that starts now, with a number of bytes done before.
    pub fn new(done: u64) -> Self {
        Self {
            looked_s: 0.0,
            worked_s: 0.0,
            marks: [(0.0, done); 2],
            first: done,
        }
    }

    /// Takes note of the bytes done `at_s` seconds after the beginning; `worked`: the job was at work since the last look.
    pub fn look(&mut self, at_s: f64, done: u64, worked: bool) {
        let passed = (at_s - self.looked_s).max(0.0);
        self.looked_s = at_s;
        if worked {
            self.worked_s += passed;
        }
        if self.worked_s - self.marks[1].0 >= WINDOW_S {
            self.marks = [self.marks[1], (self.worked_s, done)];
        }
    }

    /// Recent bytes per second.
    pub fn rate(&self, done: u64) -> u64 {
        per_second(done, self.marks[0], self.worked_s)
    }

    /// Bytes a second over all of its time at work.
    pub fn mean(&self, done: u64) -> u64 {
        per_second(done, (0.0, self.first), self.worked_s)
    }
}

fn per_second(done: u64, (since_s, before): Mark, now_s: f64) -> u64 {
    (done.saturating_sub(before) as f64 / (now_s - since_s).max(0.001)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_rate_is_of_the_last_seconds_and_knows_no_pause_and_nothing_done_before() {
        let mut pace = Pace::new(1000 * MIB);
        let mut done = 1000 * MIB;
        for second in 1..=60 {
            done += 8 * MIB;
            pace.look(f64::from(second), done, true);
            assert_eq!(pace.rate(done), 8 * MIB, "after {second} s");
        }
        for second in 61..=1000 {
            pace.look(f64::from(second), done, false);
            assert_eq!(pace.rate(done), 8 * MIB);
        }
        for second in 1001..=1010 {
            done += 2 * MIB;
            pace.look(f64::from(second), done, true);
        }
        assert!((2 * MIB..8 * MIB).contains(&pace.rate(done)));
        for second in 1011..=1031 {
            done += 2 * MIB;
            pace.look(f64::from(second), done, true);
        }
        assert_eq!(pace.rate(done), 2 * MIB);
        let seconds = 60 + 31;
        assert_eq!(pace.mean(done), (done - 1000 * MIB) / seconds);
    }
}
