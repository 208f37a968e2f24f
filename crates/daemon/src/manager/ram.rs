//! RAM tiers: configured sizes, reduced while the host is short of memory.

use crate::memory::available;
use crate::ram::{ALL, Memory, share};
use crate::sync::lock;
use crate::{Control, RamPlan};
use std::sync::{Arc, Mutex};
use units::format_bytes;

/// The RAM tiers of open pools.
pub struct RamTiers {
    control: Arc<dyn Control>,
    plan: RamPlan,
    /// Share of their RAM tiers that pools may use, in thousandths. Locked before the engine is
    /// called.
    share: Mutex<u64>,
}

impl RamTiers {
    /// RAM tiers of full size.
    pub(super) fn new(control: &Arc<dyn Control>, plan: RamPlan) -> Self {
        Self {
            control: Arc::clone(control),
            plan,
            share: Mutex::new(ALL),
        }
    }

    /// Adapts the RAM tiers of open pools to the available memory of the host, given the text of
    /// `/proc/meminfo`. If it does not state the available memory, RAM tiers have their full size.
    pub fn fit(&self, meminfo: &str) {
        let mut known = lock(&self.share);
        let (before, available) = (*known, available(meminfo));
        let is_short = self.plan.reserve > available.or(Some(u64::MAX));
        if before == ALL && !is_short && self.plan.pools.is_empty() {
            return;
        }
        let Ok(pools) = self.control.pool_list() else {
            return;
        };
        let wanted = |name: &str| self.plan.of(name);
        if let (Some(reserve), Some(available)) = (self.plan.reserve, available) {
            *known = share(
                before,
                Memory {
                    available,
                    reserve,
                    wanted: pools.iter().map(|pool| wanted(&pool.name)).sum(),
                    used: pools.iter().map(|pool| pool.ram_bytes).sum(),
                },
            );
            let now = *known;
            let part = |share: u64| format!("{}.{} %", share / 10, share % 10);
            if now < before {
                tracing::warn!(
                    "the host has {} available, less than host_reserve ({}): RAM tiers are \
                     reduced to {} of their sizes",
                    format_bytes(available),
                    format_bytes(reserve),
                    part(now)
                );
            } else if now > before && now == ALL {
                tracing::info!("the host has enough memory again: RAM tiers are back to full size");
            }
        }
        for pool in pools {
            let bytes = u128::from(wanted(&pool.name)) * u128::from(*known) / u128::from(ALL);
            let bytes = bytes as u64;
            if bytes == pool.ram_limit {
                continue;
            }
            // It may have been closed concurrently.
            if let Err(failed) = self.control.pool_set_ram(&pool.name, bytes) {
                tracing::debug!(pool = pool.name, %failed, "cannot resize its RAM tier");
            }
        }
    }
}
