//! Whether volumes with policies got what they were promised in the last minute (docs/events.md#promise_unmet), and where
//! their operations spent most of their time meanwhile. Pure: time and counters are given.

use api::v1::QosBottleneck;
use engine::{VolumeLook, VolumeQos};
use std::collections::VecDeque;

/// Time between two marks, in seconds, and as many as a minute has.
const MARK_S: u64 = 10;
const MARKS: usize = 6;
/// Windows in a minute that mean something.
const ENOUGH: u64 = 10;
/// Part of them in which a promise is to be kept, in per cent.
const KEPT_PERCENT: u64 = 95;

/// Where a pool's writes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// To the fast tier.
    Fast,
    /// To the slow one, as there is no other.
    Slow,
    /// To a fast tier that is nearly full of what is not written back yet.
    Full,
}

/// Time that operations spent beneath the gate since the pool was opened, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub struct Beneath {
    fast_ns: u64,
    slow_ns: u64,
    written_ns: u64,
}

impl Beneath {
    /// Of these volumes together.
    pub fn of<'a>(volumes: impl Iterator<Item = &'a VolumeLook>) -> Self {
        volumes.fold(Self::default(), |sum, volume| Self {
            fast_ns: sum.fast_ns + volume.sources.fast.ns,
            slow_ns: sum.slow_ns + volume.sources.slow.ns,
            written_ns: sum.written_ns + volume.counters.write_ns,
        })
    }
}

/// What had been counted at a moment.
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

/// A promise to a volume, or to a group.
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
            "it got what policy {policy} promises in {:.1} % of the time in which it asked for it",
            100.0 * met as f64 / windows as f64
        )
    })
}

/// Where operations spent most of their time between two marks; nothing where they took none.
fn longest(first: &Mark, last: &Mark, written: Written) -> Option<QosBottleneck> {
    // A volume that left its group takes back what it counted.
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
    /// Takes note of what a volume had attained `up_s` seconds after the daemon was started.
    pub fn look(&mut self, qos: &VolumeQos, beneath: Beneath, written: Written, up_s: u64) {
        let last = self.marks.back().copied();
        let is_other = self.policy.as_ref() != Some(&qos.policy);
        if is_other || last.is_some_and(|last| qos.windows < last.windows) {
            // What others promised does not count, nor what was counted before the pool was opened.
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

    /// How far its policy was not kept in the last whole minute, as it was seen up to ten seconds ago.
    pub fn unmet(&self) -> Option<&str> {
        self.unmet.as_deref()
    }

    /// Where operations spent most of their time in the last minute, or as much of it as was seen; nothing where there
    /// were none.
    pub fn bottleneck(&self) -> Option<QosBottleneck> {
        self.bottleneck
    }
}

#[cfg(test)]
#[path = "promises_tests.rs"]
mod tests;
