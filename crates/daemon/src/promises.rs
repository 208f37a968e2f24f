//! Whether volumes with policies got what they were promised in the last minute (docs/events.md#promise_unmet). Pure: time
//! and counters are given.

use engine::VolumeQos;
use std::collections::VecDeque;

/// Time between two marks, in seconds, and as many as a minute has.
const MARK_S: u64 = 10;
const MARKS: usize = 6;
/// Windows in a minute that mean something.
const ENOUGH: u64 = 10;
/// Part of them in which a promise is to be kept, in per cent.
const KEPT_PERCENT: u64 = 95;

/// What had been counted at a moment.
#[derive(Clone, Copy)]
struct Mark {
    up_s: u64,
    windows: u64,
    met: u64,
}

/// A promise to a volume.
#[derive(Default)]
pub struct Promise {
    marks: VecDeque<Mark>,
    policy: Option<engine::QosPolicy>,
    unmet: Option<String>,
}

fn judge(windows: u64, met: u64, policy: &str) -> Option<String> {
    let is_unmet = windows >= ENOUGH && met * 100 < windows * KEPT_PERCENT;
    is_unmet.then(|| {
        format!(
            "it got what policy {policy} promises in {:.1} % of the time in which it asked for it",
            100.0 * met as f64 / windows as f64
        )
    })
}

impl Promise {
    /// Takes note of what a volume had attained `up_s` seconds after the daemon was started. Tells how far its policy was
    /// not kept in the last whole minute, as it was seen up to ten seconds ago.
    pub fn look(&mut self, qos: &VolumeQos, up_s: u64) -> Option<&str> {
        let last = self.marks.back().copied();
        let is_other = self.policy.as_ref() != Some(&qos.policy);
        if is_other || last.is_some_and(|last| qos.windows < last.windows) {
            // What others promised does not count, nor what was counted before the pool was opened.
            self.marks.clear();
            self.unmet = None;
            self.policy = Some(qos.policy.clone());
        }
        if self
            .marks
            .back()
            .is_some_and(|last| up_s < last.up_s + MARK_S)
        {
            return self.unmet.as_deref();
        }
        let mark = Mark {
            up_s,
            windows: qos.windows,
            met: qos.met,
        };
        if self.marks.len() >= MARKS
            && let Some(first) = self.marks.pop_front()
        {
            let (windows, met) = (mark.windows - first.windows, mark.met - first.met);
            self.unmet = judge(windows, met, &qos.policy.name);
        }
        self.marks.push_back(mark);
        self.unmet.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qos(windows: u64, met: u64, level: u8) -> VolumeQos {
        VolumeQos {
            policy: engine::QosPolicy {
                id: 1,
                name: "gold".to_owned(),
                level,
                min_iops: 100,
                min_bandwidth: 0,
                max_iops: 0,
                max_bandwidth: 0,
                burst_s: 0,
                max_latency_ns: 0,
                weight: 100,
            },
            group: None,
            iops: 0,
            bandwidth: 0,
            operations: 0,
            late: 0,
            held: 0,
            cost_ns: 0,
            windows,
            met,
        }
    }

    #[test]
    fn a_whole_minute_is_judged() {
        let mut promise = Promise::default();
        for up_s in 0..60 {
            assert_eq!(promise.look(&qos(up_s * 10, up_s * 9, 1), up_s), None);
        }
        let unmet = promise.look(&qos(600, 540, 1), 60).unwrap();
        assert!(unmet.contains("90.0 %"), "{unmet}");
        for up_s in 61..=130 {
            let met = 540 + (up_s - 60) * 10;
            let unmet = promise.look(&qos(up_s * 10, met, 1), up_s).is_some();
            assert!(!unmet || up_s < 120, "after {up_s} s");
        }
    }

    #[test]
    fn few_windows_and_other_policies_say_nothing() {
        let mut promise = Promise::default();
        for up_s in 0..=70 {
            assert_eq!(promise.look(&qos(up_s / 10, 0, 1), up_s), None);
        }
        for up_s in 71..140 {
            promise.look(&qos(up_s * 10, 0, 1), up_s);
        }
        assert!(promise.look(&qos(1400, 0, 1), 140).is_some());
        assert_eq!(promise.look(&qos(1410, 0, 2), 141), None);
        assert_eq!(promise.look(&qos(3, 3, 2), 142), None, "reopened");
    }
}
