//! How much memory pools may use for their RAM tiers while the host is short of it.

use std::collections::BTreeMap;

/// What pools have when there is enough, in thousandths.
pub(crate) const ALL: u64 = 1000;
/// What they keep however short memory is.
const LEAST: u64 = 60;
/// What they get back at a time.
const STEP: u64 = 125;

/// The sizes of pools' RAM tiers, and what is left to the host.
#[derive(Clone, Default, Debug)]
pub struct RamPlan {
    /// Bytes of each pool's.
    pub each: u64,
    /// The same of pools that have another size, by name.
    pub pools: BTreeMap<String, u64>,
    /// Bytes of memory that are to be available to others; none: pools keep what they have.
    pub reserve: Option<u64>,
}

impl RamPlan {
    /// Bytes of a pool's RAM tier when there is enough.
    pub fn of(&self, pool: &str) -> u64 {
        self.pools.get(pool).copied().unwrap_or(self.each)
    }
}

/// Memory now, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// What the system could give to others.
    pub available: u64,
    /// What is to be available to them.
    pub reserve: u64,
    /// What pools may have in their RAM tiers when there is enough.
    pub wanted: u64,
    /// What they have.
    pub used: u64,
}

/// Thousandths of their RAM tiers that pools may use, after they could use `before`: at once less by what is lacking,
/// and more a step at a time when there is room for two.
pub(crate) fn share(before: u64, memory: Memory) -> u64 {
    let Memory {
        available,
        reserve,
        wanted,
        used,
    } = memory;
    if available < reserve {
        let left = used.saturating_sub(reserve - available);
        let share = u128::from(left) * u128::from(ALL) / u128::from(wanted.max(1));
        return before.min((share as u64).max(LEAST));
    }
    let step = wanted / ALL * STEP;
    match available - reserve >= 2 * step {
        true => ALL.min(before + STEP),
        false => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_lacking_is_given_up_at_once_and_comes_back_in_steps() {
        let memory = |available: u64, used: u64| Memory {
            available: available * MIB,
            reserve: 500 * MIB,
            wanted: 1000 * MIB,
            used: used * MIB,
        };
        assert_eq!(share(ALL, memory(600, 1000)), ALL);
        assert_eq!(share(ALL, memory(300, 1000)), 800);
        // They had not filled theirs.
        assert_eq!(share(ALL, memory(300, 500)), 300);
        assert_eq!(share(800, memory(0, 100)), LEAST);
        // Less is never more.
        assert_eq!(share(200, memory(499, 1000)), 200);
        // A step of 125 MiB needs room for two.
        assert_eq!(share(300, memory(700, 300)), 300);
        assert_eq!(share(300, memory(760, 300)), 425);
        assert_eq!(share(950, memory(9000, 900)), ALL);
        let mut now = LEAST;
        for _ in 0..8 {
            now = share(now, memory(9000, 0));
        }
        assert_eq!(now, ALL);
    }

    #[test]
    fn a_pool_has_its_own_size_or_that_of_all() {
        let plan = RamPlan {
            each: 5,
            pools: BTreeMap::from([("tank".to_owned(), 7)]),
            reserve: None,
        };
        assert_eq!((plan.of("tank"), plan.of("other")), (7, 5));
    }
}
