//! The hit rate of each policy on a sequence, as a cache of blocks.

use crate::failure::Result;
use crate::interrupt;
use placement::{Blocks, Config, Extent, Policy};
use rivals::{Belady, Cache, Outcome, POLICIES};

/// Uses between checks whether it has been cancelled.
const LOOK: usize = 1 << 20;

/// Result of one policy.
pub struct Row {
    /// Its name in the table.
    pub name: &'static str,
    /// Uses of what was there.
    pub hits: u64,
    /// Entries taken in.
    pub admitted: u64,
    /// Uses in all.
    pub uses: u64,
}

/// The policies in the order of their table, and after them the bound that no policy exceeds.
///
/// # Errors
/// When a person ends it.
pub fn all(keys: &[u64], capacity: usize, seed: u64) -> Result<Vec<Row>> {
    let mut rows = vec![one("convect", &mut OnDemand::new(capacity, seed), keys)?];
    for policy in POLICIES {
        rows.push(one(policy.name, (policy.make)(capacity).as_mut(), keys)?);
    }
    rows.push(one("belady", &mut Belady::new(capacity, keys), keys)?);
    Ok(rows)
}

/// How much of what the bound has more than LRU a policy has more, too; nothing when that is no more.
pub fn gap_closed(rows: &[Row], name: &str) -> Option<f64> {
    let hits = |name: &str| {
        rows.iter()
            .find(|row| row.name == name)
            .map(|row| row.hits as f64)
    };
    let (low, high, own) = (hits("lru")?, hits("belady")?, hits(name)?);
    (high > low).then(|| (own - low) / (high - low))
}

/// Convect's policy over blocks instead of extents, each alone: without RAM, nothing is read ahead,
/// and what is requested is taken in if it is worth more than what would leave.
struct OnDemand {
    policy: Policy,
    capacity: usize,
}

impl OnDemand {
    fn new(capacity: usize, seed: u64) -> Self {
        let config = Config {
            fast_blocks: capacity as u64,
            ram_blocks: 0,
            margin: 1.0,
            seed,
        };
        Self {
            policy: Policy::new(config),
            capacity,
        }
    }

    fn block(key: u64) -> Blocks {
        let extent = Extent {
            volume: 0,
            number: key,
        };
        Blocks { extent, mask: 1 }
    }
}

impl Cache for OnDemand {
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome {
        let block = Self::block(key);
        if self.policy.read(block).absent == 0 {
            return Outcome::Hit;
        }
        if self.capacity == 0 {
            return Outcome::Bypassed;
        }
        self.policy.came(block);
        let mut outcome = Outcome::Bypassed;
        while let Some(leaving) = self.policy.leave_ram() {
            if leaving.promote != 0 {
                outcome = Outcome::Admitted;
            }
        }
        while self.policy.fast_excess() > 0
            && let Some(victim) = self.policy.victim()
        {
            self.policy.left_fast(Blocks {
                extent: victim.extent,
                mask: victim.fast,
            });
            gone.push(victim.extent.number);
        }
        outcome
    }

    fn contains(&self, key: u64) -> bool {
        self.policy.is_fast(Self::block(key))
    }
}

fn one(name: &'static str, cache: &mut dyn Cache, keys: &[u64]) -> Result<Row> {
    let (mut hits, mut admitted) = (0, 0);
    let mut gone = Vec::new();
    for part in keys.chunks(LOOK) {
        interrupt::check()?;
        for key in part {
            match cache.access(*key, &mut gone) {
                Outcome::Hit => hits += 1,
                Outcome::Admitted => admitted += 1,
                Outcome::Bypassed => {}
            }
            gone.clear();
        }
    }
    Ok(Row {
        name,
        hits,
        admitted,
        uses: keys.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_defeats_lru_and_no_policy_beats_the_bound() {
        let keys: Vec<u64> = (0..10_000).map(|use_| use_ % 100).collect();
        let rows = all(&keys, 50, 1).expect("nobody ends it");
        let hits = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.hits);
        assert_eq!(hits("lru"), Some(0));
        let bound = hits("belady").expect("it is the last row");
        assert!(bound > 4_800);
        assert!(
            rows.iter()
                .all(|row| row.hits <= bound && row.hits + row.admitted <= 10_000)
        );
        assert_eq!(rows.len(), POLICIES.len() + 2);
    }
}
