//! Read time of volumes by tier in the last minutes. It is not recorded: there are totals of a few
//! marks only, in memory.

use crate::sync::lock;
use crate::why::Sources;
use engine::{PoolLook, VolumeLook};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// Seconds between marks, and marks of a volume.
const MARK_S: u64 = 30;
const MARKS: usize = 12;

/// Totals of a volume since its pool was opened: nanoseconds and reads from RAM, the fast and the
/// slow tier, and nanoseconds of all reads.
#[derive(Clone, Copy, Debug)]
struct Totals {
    tiers: [(u64, u64); 3],
    read_ns: u64,
}

impl Totals {
    fn of(volume: &VolumeLook) -> Self {
        let sources = &volume.sources;
        let tiers = [&sources.ram, &sources.fast, &sources.slow];
        Self {
            tiers: tiers.map(|times| (times.ns, times.counts.iter().sum())),
            read_ns: volume.counters.read_ns,
        }
    }

    /// What happened since; nothing without reads, or if the counters restarted.
    fn since(&self, before: &Self) -> Option<Sources> {
        let read_ns = self.read_ns.checked_sub(before.read_ns)?;
        let mut tiers = [(0.0, 0.0); 3];
        let pairs = self.tiers.iter().zip(&before.tiers);
        for (did, (now, before)) in tiers.iter_mut().zip(pairs) {
            let (ns, reads) = (now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?);
            *did = (ns as f64, reads as f64);
        }
        let [ram, fast, slow] = tiers;
        let is_known = ram.0 + fast.0 + slow.0 > 0.0;
        is_known.then_some(Sources {
            ram,
            fast,
            slow,
            read_ns: read_ns as f64,
        })
    }
}

/// Totals of a volume with the seconds in which they were read, oldest first.
type Marks = VecDeque<(u64, Totals)>;

/// Marks of volumes, by pool and name: when, in seconds since 1970, and totals. Locked briefly.
#[derive(Default)]
pub struct RecentSources(Mutex<BTreeMap<(String, String), Marks>>);

impl RecentSources {
    /// Records the totals of all volumes at `at_s`.
    pub fn note(&self, pools: &[PoolLook], at_s: u64) {
        let mut marks = lock(&self.0);
        let mut before = std::mem::take(&mut *marks);
        for pool in pools {
            for volume in &pool.volumes {
                let key = (pool.status.name.clone(), volume.status.name.clone());
                let mut known = before.remove(&key).unwrap_or_default();
                let last_s = known.back().map(|(last_s, _)| *last_s);
                if last_s.is_none_or(|last_s| at_s >= last_s + MARK_S) {
                    known.push_back((at_s, Totals::of(volume)));
                }
                if known.len() > MARKS {
                    known.pop_front();
                }
                marks.insert(key, known);
            }
        }
    }

    /// Read time of a volume since `from_s`, or the next mark after it; nothing without reads.
    pub fn since(&self, pool: &str, volume: &VolumeLook, from_s: u64) -> Option<Sources> {
        let marks = lock(&self.0);
        let key = (pool.to_owned(), volume.status.name.clone());
        let marks = marks.get(&key)?;
        let before = marks.iter().rev().find(|(at_s, _)| *at_s <= from_s);
        let (_, before) = before.or_else(|| marks.front())?;
        Totals::of(volume).since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarted_counters_and_missing_reads_give_nothing() {
        let totals = |ns: u64| Totals {
            tiers: [(ns, 1), (0, 0), (ns * 2, 3)],
            read_ns: ns * 4,
        };
        let did = totals(10).since(&totals(4)).unwrap();
        assert_eq!((did.ram.0, did.slow.0, did.read_ns), (6.0, 12.0, 24.0));
        assert!(totals(4).since(&totals(10)).is_none());
        assert!(totals(4).since(&totals(4)).is_none());
    }
}
