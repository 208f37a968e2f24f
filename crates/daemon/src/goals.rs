//! Performance targets of volumes, evaluated over the last minute (docs/events.md#target_unmet).
//! Pure: time and counters are passed in.

use engine::{IoCounters, IoSpread, Spread, TIME_BOUNDS, Targets};
use std::collections::VecDeque;
use units::format_bytes;

/// Seconds between marks, and marks per minute.
const MARK_S: u64 = 10;
const MARKS: usize = 6;
/// Minimum operations per minute for an evaluation: of fewer, a single one exceeds one percent.
const ENOUGH: u64 = 100;
/// Assumed latency where no target is set, to estimate a volume's demand, in nanoseconds.
const USUAL_NS: f64 = 1e6;
/// Share of a target that counts as met.
const NEARLY: f64 = 0.95;

/// Activity of a volume in a minute.
struct Minute {
    seconds: f64,
    operations: u64,
    bytes: u64,
    /// Sum of the latencies of all operations, in nanoseconds.
    ns: u64,
    spread: IoSpread,
}

/// Counters at a point in time.
#[derive(Clone)]
struct Mark {
    up_s: u64,
    counters: IoCounters,
    spread: IoSpread,
}

/// A volume with performance targets.
#[derive(Default)]
pub struct Goal {
    marks: VecDeque<Mark>,
    targets: Targets,
    unmet: Option<String>,
}

/// Number of operations that certainly exceeded a latency: histogram bounds are powers of two.
fn longer(spread: &Spread, than_ns: u64) -> u64 {
    let least = std::iter::once(0).chain(TIME_BOUNDS.values());
    let counted = spread.times.iter().zip(least);
    let longer = counted.filter(|(_, least)| *least >= than_ns);
    longer.map(|(count, _)| count).sum()
}

fn milliseconds(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

/// The targets that were missed, in words.
fn judge(targets: &Targets, minute: &Minute) -> Option<String> {
    if minute.operations < ENOUGH {
        return None;
    }
    let rate = minute.operations as f64 / minute.seconds;
    let bandwidth = minute.bytes as f64 / minute.seconds;
    let mean_ns = minute.ns as f64 / minute.operations as f64;
    let under_way = minute.ns as f64 / 1e9 / minute.seconds;
    let within = |got: f64, promised: u64| promised == 0 || got <= promised as f64;
    let mut unmet = Vec::new();
    let of = |spread| longer(spread, targets.latency_ns);
    let slow = of(&minute.spread.reads) + of(&minute.spread.writes);
    if targets.latency_ns > 0
        && slow * 100 > minute.operations
        && within(rate, targets.iops)
        && within(bandwidth, targets.bandwidth)
    {
        unmet.push(format!(
            "missed its latency target: {:.1} % of I/Os above {}, at {rate:.0} IOPS",
            100.0 * slow as f64 / minute.operations as f64,
            milliseconds(targets.latency_ns as f64)
        ));
    }
    let promised_ns = match targets.latency_ns {
        0 => USUAL_NS,
        ns => ns as f64,
    };
    // Estimated demand: the rate if each operation had completed within its target latency.
    let asked = |got: f64| match under_way >= 1.0 {
        true => got * (mean_ns / promised_ns).max(1.0),
        false => got,
    };
    let missed = |got: f64, promised: u64| {
        let promised = promised as f64;
        promised > 0.0 && got < promised * NEARLY && asked(got) >= promised
    };
    if missed(rate, targets.iops) {
        unmet.push(format!(
            "missed its IOPS target: {rate:.0} of {} IOPS at queue depth {under_way:.1}, mean latency {}",
            targets.iops,
            milliseconds(mean_ns)
        ));
    }
    if missed(bandwidth, targets.bandwidth) {
        unmet.push(format!(
            "missed its bandwidth target: {}/s of {}/s at queue depth {under_way:.1}, mean latency {}",
            format_bytes(bandwidth as u64),
            format_bytes(targets.bandwidth),
            milliseconds(mean_ns)
        ));
    }
    (!unmet.is_empty()).then(|| unmet.join("; "))
}

impl Mark {
    fn minute_since(&self, before: &Self) -> Option<Minute> {
        let count =
            |of: fn(&IoCounters) -> u64| of(&self.counters).checked_sub(of(&before.counters));
        Some(Minute {
            seconds: self.up_s.checked_sub(before.up_s).filter(|s| *s > 0)? as f64,
            operations: count(|did| did.reads + did.writes)?,
            bytes: count(|did| did.read_bytes + did.write_bytes)?,
            ns: count(|did| did.read_ns + did.write_ns)?,
            spread: self.spread.since(&before.spread),
        })
    }
}

impl Goal {
    /// Records the counters of a volume `up_s` seconds after the daemon's start. Returns the
    /// targets missed in the last minute, delayed by up to ten seconds.
    pub fn look(
        &mut self,
        targets: &Targets,
        up_s: u64,
        (counters, spread): (&IoCounters, &IoSpread),
    ) -> Option<&str> {
        if self.targets != *targets {
            // Measurements against other targets do not count.
            (self.targets, self.unmet) = (*targets, None);
        }
        let last_s = self.marks.back().map(|mark| mark.up_s);
        if last_s.is_none_or(|last_s| up_s >= last_s + MARK_S) {
            let mark = Mark {
                up_s,
                counters: *counters,
                spread: *spread,
            };
            self.mark(mark);
        }
        self.unmet.as_deref()
    }

    fn mark(&mut self, mark: Mark) {
        let minute = self.marks.front().map(|first| mark.minute_since(first));
        match minute {
            // The counters restarted.
            Some(None) => {
                self.marks.clear();
                self.unmet = None;
            }
            Some(Some(minute)) if self.marks.len() >= MARKS => {
                self.unmet = judge(&self.targets, &minute);
                self.marks.pop_front();
            }
            _ => {}
        }
        self.marks.push_back(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PROMISED: Targets = Targets {
        iops: 1000,
        bandwidth: 0,
        latency_ns: 2 * MS,
    };

    /// A minute at a rate of 4 KiB operations, of which a share is slow; the others take 0.1 ms.
    fn minute(rate: u64, slow: f64, slow_ms: u64) -> Minute {
        let operations = rate * 60;
        let slow = (operations as f64 * slow) as u64;
        let mut spread = IoSpread::default();
        let bucket = TIME_BOUNDS.values().position(|bound| bound >= slow_ms * MS);
        spread.reads.times[bucket.unwrap()] += slow;
        spread.reads.times[5] += operations - slow;
        Minute {
            seconds: 60.0,
            operations,
            bytes: operations * 4096,
            ns: slow * slow_ms * MS + (operations - slow) * MS / 10,
            spread,
        }
    }

    fn unmet(targets: &Targets, minute: &Minute) -> bool {
        judge(targets, minute).is_some()
    }

    #[test]
    fn latency_target_applies_up_to_the_iops_target() {
        assert!(unmet(&PROMISED, &minute(900, 0.02, 20)));
        assert!(
            !unmet(&PROMISED, &minute(900, 0.009, 20)),
            "below one percent"
        );
        assert!(
            !unmet(&PROMISED, &minute(1500, 0.02, 20)),
            "its demand exceeds the target"
        );
        let any = Targets {
            iops: 0,
            ..PROMISED
        };
        assert!(unmet(&any, &minute(1500, 0.02, 20)));
        assert!(!unmet(&PROMISED, &minute(1, 0.5, 20)), "too few operations");
        // Indistinguishable from the target.
        assert!(!unmet(&PROMISED, &minute(900, 1.0, 2)));
        let text = judge(&PROMISED, &minute(900, 0.02, 20)).unwrap();
        assert_eq!(
            text,
            "missed its latency target: 2.0 % of I/Os above 2.000 ms, at 900 IOPS"
        );
    }

    #[test]
    fn low_demand_does_not_miss_the_iops_target() {
        let only_iops = Targets {
            latency_ns: 0,
            ..PROMISED
        };
        assert!(!unmet(&only_iops, &minute(100, 0.0, 1)));
        // 100 IOPS of 5 ms: idle for half of the time.
        assert!(!unmet(&only_iops, &minute(100, 1.0, 5)));
        let few = Targets {
            iops: 400,
            ..only_iops
        };
        assert!(
            !unmet(&few, &minute(100, 1.0, 5)),
            "the load is limited by its queue depth"
        );
        // 400 IOPS of 10 ms: queue depth 4, so 4,000 IOPS of demand at 1 ms each.
        assert!(unmet(&only_iops, &minute(400, 1.0, 10)));
        // Queue depth 1 at 4 ms: 250 IOPS, 1,000 at 1 ms each.
        assert!(unmet(&only_iops, &minute(250, 1.0, 4)));
        let two = Targets {
            iops: 1000,
            ..PROMISED
        };
        assert!(judge(&two, &minute(250, 1.0, 4)).is_some_and(|text| !text.contains("of 1000")));
        let bandwidth = Targets {
            iops: 0,
            bandwidth: 4 << 20,
            latency_ns: 0,
        };
        assert!(unmet(&bandwidth, &minute(400, 1.0, 10)));
        assert!(!unmet(&bandwidth, &minute(1100, 0.0, 1)));
        assert!(!unmet(&Targets::default(), &minute(400, 1.0, 10)));
    }

    #[test]
    fn whole_minute_is_evaluated_and_reset_counters_restart_it() {
        let mut goal = Goal::default();
        let mut spread = IoSpread::default();
        let mut counters = IoCounters::default();
        let mut look = |goal: &mut Goal, up_s: u64, slow: bool| {
            let took_ns = if slow { 20 * MS } else { MS / 10 };
            for _ in 0..100 {
                let bucket = TIME_BOUNDS.values().position(|bound| bound >= took_ns);
                spread.writes.times[bucket.unwrap()] += 1;
            }
            counters.writes += 100;
            counters.write_ns += 100 * took_ns;
            goal.look(&PROMISED, up_s, (&counters, &spread)).is_some()
        };
        for up_s in 0..60 {
            assert!(!look(&mut goal, up_s, true), "after {up_s} s");
        }
        assert!(look(&mut goal, 60, true));
        for up_s in 61..=129 {
            let unmet = look(&mut goal, up_s, false);
            assert!(unmet || up_s >= 120, "after {up_s} s");
        }
        assert!(!look(&mut goal, 130, false));
        for up_s in 131..200 {
            look(&mut goal, up_s, true);
        }
        assert!(look(&mut goal, 200, true));
        let (counters, spread) = (IoCounters::default(), IoSpread::default());
        let told = goal.look(&PROMISED, 210, (&counters, &spread));
        assert_eq!(told, None, "the pool was reopened");
    }

    #[test]
    fn changed_targets_restart_the_evaluation() {
        let mut goal = Goal {
            targets: PROMISED,
            unmet: Some("late".to_owned()),
            ..Goal::default()
        };
        let nothing = (&IoCounters::default(), &IoSpread::default());
        assert_eq!(goal.look(&PROMISED, 0, nothing), Some("late"));
        let other = Targets {
            latency_ns: MS,
            ..PROMISED
        };
        assert_eq!(goal.look(&other, 1, nothing), None);
    }
}
