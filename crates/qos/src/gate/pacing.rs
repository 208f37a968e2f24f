//! For whom everybody else is paced, and who is not (`pace.rs`).

use super::entries::Entry;
use super::{CAPACITY, Gate};
use crate::pace::{AIM, Attained, ByLevel, JUDGED};
use units::mutation::{Mutation, is_on};

/// Part of what is aimed at up to which a volume counts: what one has beyond it does not make up for what another misses.
const COUNTS: f64 = 1.3;
/// Part of what is aimed at up to which a volume is exempt on average, and the time for which it may save that up, in
/// seconds: what volumes ask for and what their drives give varies more from tick to tick than from window to window.
const EXEMPT: f64 = 1.2;
const SAVED_S: f64 = 0.1;

/// Operations that a volume may pass ahead of the others, of `left` before a tick of this length; it earns a number per second.
fn refilled(left: u64, a_second: f64, length_s: f64) -> u64 {
    let most = a_second * SAVED_S;
    let left = if left == u64::MAX { most } else { left as f64 };
    (left + a_second * length_s).min(most) as u64
}

impl<T> Gate<T> {
    /// The level of a volume that requested something in a tick, and operations per second that it had and that are aimed at,
    /// if it has a minimum that is judged.
    fn attained(&self, entry: &Entry<T>, length_ns: u64) -> Option<(u8, f64, f64)> {
        let tenant = entry.tenant.as_ref()?;
        let seen = &entry.seen;
        let first = entry.held.front().map(|held| held.request.bytes);
        let bytes = seen.bytes.checked_div(seen.operations).or(first)?;
        let floor = tenant.floor(bytes) as u64;
        let floor = tenant.service().part(self.shard, floor) as f64;
        let had = seen.operations as f64 * CAPACITY as f64 / length_ns as f64;
        (floor >= JUDGED).then(|| (tenant.policy().level, had, floor * AIM))
    }

    /// Mean time of paced operations, in nanoseconds; 0 before the first one.
    fn paced_mean(&self) -> f64 {
        let paced = self.entries.iter().filter(|entry| entry.is_paced());
        let (mut cost_ns, mut operations) = (0, 0);
        for entry in paced {
            cost_ns += entry.seen.cost_ns;
            operations += entry.seen.operations;
        }
        cost_ns as f64 / operations.max(1) as f64
    }

    /// Decides after a tick what may pass in the next one. `is_saturated`: the loop hardly slept in it.
    pub(super) fn pace_others(&mut self, length_ns: u64, is_saturated: bool) {
        let per_second = |ns: u64| ns as f64 * CAPACITY as f64 / length_ns as f64;
        let all = per_second(self.entries.iter().map(|entry| entry.seen.cost_ns).sum());
        let attained = |entry| self.attained(entry, length_ns);
        let judged: Vec<Option<(u8, f64, f64)>> = self.entries.iter().map(attained).collect();
        let mut by_level = ByLevel::default();
        for (entry, judged) in self.entries.iter().zip(&judged) {
            let Some((level, had, aim)) = *judged else {
                continue;
            };
            let of = by_level[usize::from(level) - 1].get_or_insert(Attained {
                others: all,
                others_mean: self.paced_mean(),
                ..Attained::default()
            });
            let used = per_second(entry.seen.cost_ns);
            of.had += had.min(aim * COUNTS);
            of.aim += aim;
            of.used += used;
            of.others -= used;
        }
        self.pace
            .tick(&by_level, is_saturated, !self.paced.is_empty());
        let favoured = self.pace.favours();
        let length_s = length_ns as f64 / CAPACITY as f64;
        for (entry, judged) in self.entries.iter_mut().zip(judged) {
            let promised = judged.filter(|(level, ..)| favoured.is_some_and(|of| *level <= of));
            entry.exempt = match (favoured, promised) {
                (None, _) => u64::MAX,
                (Some(_), None) => 0,
                (Some(_), Some(_)) if is_on(Mutation::QosPacedAll) => 0,
                (Some(_), Some((_, _, aim))) => refilled(entry.exempt, aim * EXEMPT, length_s),
            };
        }
    }
}
