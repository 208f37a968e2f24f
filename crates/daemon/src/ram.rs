//! How much memory RAM tiers may use while the host is short of it.

use std::collections::BTreeMap;

/// Full share, in thousandths.
pub(crate) const ALL: u64 = 1000;
/// Minimum share.
const LEAST: u64 = 60;
/// Increment when the share grows again.
const STEP: u64 = 125;

/// Sizes of the pools' RAM tiers, and memory reserved for the host.
#[derive(Clone, Default, Debug)]
pub struct RamPlan {
    /// Default size, in bytes.
    pub each: u64,
    /// Sizes of individual pools, by name.
    pub pools: BTreeMap<String, u64>,
    /// Memory in bytes to keep available for others; none: RAM tiers are never reduced.
    pub reserve: Option<u64>,
}

impl RamPlan {
    /// Full size of a pool's RAM tier, in bytes.
    pub fn of(&self, pool: &str) -> u64 {
        self.pools.get(pool).copied().unwrap_or(self.each)
    }
}

/// Memory of the host, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Available memory.
    pub available: u64,
    /// Memory to keep available.
    pub reserve: u64,
    /// Sum of the full sizes of RAM tiers.
    pub wanted: u64,
    /// Memory in use by RAM tiers.
    pub used: u64,
}

/// Share of their RAM tiers that pools may use, in thousandths, given the previous share: reduced
/// immediately by what is lacking, and increased step by step when there is room for two steps.
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
    fn ram_share_shrinks_immediately_and_grows_in_steps() {
        let memory = |available: u64, used: u64| Memory {
            available: available * MIB,
            reserve: 500 * MIB,
            wanted: 1000 * MIB,
            used: used * MIB,
        };
        assert_eq!(share(ALL, memory(600, 1000)), ALL);
        assert_eq!(share(ALL, memory(300, 1000)), 800);
        // The RAM tiers were not full.
        assert_eq!(share(ALL, memory(300, 500)), 300);
        assert_eq!(share(800, memory(0, 100)), LEAST);
        // A reduction never increases the share.
        assert_eq!(share(200, memory(499, 1000)), 200);
        // A step of 125 MiB requires room for two.
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
    fn pool_ram_is_specific_or_default() {
        let plan = RamPlan {
            each: 5,
            pools: BTreeMap::from([("tank".to_owned(), 7)]),
            reserve: None,
        };
        assert_eq!((plan.of("tank"), plan.of("other")), (7, 5));
    }
}
