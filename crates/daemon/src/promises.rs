//! Whether volumes with QoS policies met their minimums in the last minute
//! (docs/events.md#promise_unmet), and their bottleneck. Pure: time and counters are passed in.

use api::v1::QosBottleneck;
use engine::{VolumeLook, VolumeQos};
use std::collections::VecDeque;

/// Seconds between marks, and marks per minute.
const MARK_S: u64 = 10;
const MARKS: usize = 6;
/// Minimum number of windows per minute for an evaluation.
const ENOUGH: u64 = 10;
/// Share of these in which the minimum must be met, in percent.
const KEPT_PERCENT: u64 = 95;

/// The tier that a pool's writes go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// To the fast tier.
    Fast,
    /// To the slow tier of a pool without a fast one.
    Slow,
    /// To a fast tier that is nearly full of dirty data.
    Full,
}

/// Time that operations spent below the gate since the pool was opened, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub struct Beneath {
    fast_ns: u64,
    slow_ns: u64,
    written_ns: u64,
}

impl Beneath {
    /// Sum over volumes.
    pub fn of<'a>(volumes: impl Iterator<Item = &'a VolumeLook>) -> Self {
        volumes.fold(Self::default(), |sum, volume| Self {
            fast_ns: sum.fast_ns + volume.sources.fast.ns,
            slow_ns: sum.slow_ns + volume.sources.slow.ns,
            written_ns: sum.written_ns + volume.counters.write_ns,
        })
    }
}

/// Counters at a point in time.
#[derive(Clone, Copy)]
struct Mark {
    up_s: u64,
    windows: u64,
    met: u64,
    held_ns: u64,
    own_ns: u64,
    waited_ns: u64,
    beneath: Beneath,
}

/// The guarantee of a volume, or of a group.
#[derive(Default)]
pub struct Promise {
    marks: VecDeque<Mark>,
    policy: Option<engine::QosPolicy>,
    unmet: Option<String>,
    bottleneck: Option<QosBottleneck>,
}

fn judge(windows: u64, met: u64, policy: &str) -> Option<String> {
    let is_unmet = windows >= ENOUGH && met * 100 < windows * KEPT_PERCENT;
    is_unmet.then(|| {
        format!(
            "policy {policy} was met in {:.1} % of the time with demand",
            100.0 * met as f64 / windows as f64
        )
    })
}

/// The bottleneck between two marks; nothing without operations.
fn longest(first: &Mark, last: &Mark, written: Written) -> Option<QosBottleneck> {
    // Counters decrease when a volume leaves its group.
    let since = |of: fn(&Mark) -> u64| of(last).saturating_sub(of(first));
    let waited = since(|mark| mark.waited_ns);
    let (own, held) = (since(|mark| mark.own_ns), since(|mark| mark.held_ns));
    let own = u128::from(waited) * u128::from(own) / u128::from(held.max(1));
    let own = (own as u64).min(waited);
    let to = |tier: Written| match tier == written {
        true => since(|mark| mark.beneath.written_ns),
        false => 0,
    };
    let times = [
        (QosBottleneck::OwnMaximum, own),
        (QosBottleneck::ShardTime, waited - own),
        (
            QosBottleneck::FastTier,
            since(|mark| mark.beneath.fast_ns) + to(Written::Fast),
        ),
        (
            QosBottleneck::SlowTier,
            since(|mark| mark.beneath.slow_ns) + to(Written::Slow),
        ),
        (QosBottleneck::Room, to(Written::Full)),
    ];
    let longest = times.into_iter().max_by_key(|(_, ns)| *ns);
    longest.filter(|(_, ns)| *ns > 0).map(|(where_, _)| where_)
}

impl Promise {
    /// Records the counters of a volume `up_s` seconds after the daemon's start.
    pub fn look(&mut self, qos: &VolumeQos, beneath: Beneath, written: Written, up_s: u64) {
        let last = self.marks.back().copied();
        let is_other = self.policy.as_ref() != Some(&qos.policy);
        if is_other || last.is_some_and(|last| qos.windows < last.windows) {
            // The policy changed, or the pool was reopened: start with empty counters.
            self.marks.clear();
            self.unmet = None;
            self.bottleneck = None;
            self.policy = Some(qos.policy.clone());
        }
        if self
            .marks
            .back()
            .is_some_and(|last| up_s < last.up_s + MARK_S)
        {
            return;
        }
        let mark = Mark {
            up_s,
            windows: qos.windows,
            met: qos.met,
            held_ns: qos.held_ns,
            own_ns: qos.own_ns,
            waited_ns: qos.waited_ns,
            beneath,
        };
        let is_whole = self.marks.len() >= MARKS;
        let first = match is_whole {
            true => self.marks.pop_front(),
            false => self.marks.front().copied(),
        };
        if let Some(first) = first {
            self.bottleneck = longest(&first, &mark, written);
            if is_whole {
                let (windows, met) = (mark.windows - first.windows, mark.met - first.met);
                self.unmet = judge(windows, met, &qos.policy.name);
            }
        }
        self.marks.push_back(mark);
    }

    /// How the policy was missed in the last minute, delayed by up to ten seconds.
    pub fn unmet(&self) -> Option<&str> {
        self.unmet.as_deref()
    }

    /// The bottleneck in the last minute, or since the first mark; nothing without operations.
    pub fn bottleneck(&self) -> Option<QosBottleneck> {
        self.bottleneck
    }
}

#[cfg(test)]
#[path = "promises_tests.rs"]
mod tests;
