//! For whom everybody else is paced, and who is not (`pace.rs`).

use super::entries::Entry;
use super::{CAPACITY, Gate};
use crate::pace::{AIM, Attained, ByLevel, JUDGED};
use units::mutation::{Mutation, is_on};

/// Part of what is aimed at up to which a volume is exempt, and counts.
const EXEMPT: f64 = 1.3;
/// Length of a tick, nearly, in seconds.
const TICK_S: f64 = 0.02;

impl<T> Gate<T> {
    /// The level of a volume that asked for something in a tick, and operations a second that it had and that are aimed at,
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
                ..Attained::default()
            });
            let used = per_second(entry.seen.cost_ns);
            of.had += had.min(aim * EXEMPT);
            of.aim += aim;
            of.used += used;
            of.others -= used;
        }
        self.pace.tick(&by_level, is_saturated);
        let favoured = self.pace.favours();
        for (entry, judged) in self.entries.iter_mut().zip(judged) {
            let promised = judged.filter(|(level, ..)| favoured.is_some_and(|of| *level <= of));
            entry.exempt = match (favoured, promised) {
                (None, _) => u64::MAX,
                (Some(_), None) => 0,
                (Some(_), Some(_)) if is_on(Mutation::QosPacedAll) => 0,
                (Some(_), Some((_, _, aim))) => (aim * EXEMPT * TICK_S) as u64,
            };
        }
    }
}
