//! RAM tiers, each of its size, less while the host is short of memory.

use super::core::{Manager, lock};
use crate::memory::available;
use crate::ram::{ALL, Memory, share};
use units::format_bytes;

impl Manager {
    /// Looks at the host's memory, `meminfo` as `/proc/meminfo` has it, and has the open pools' RAM tiers be as
    /// large as it allows. Where it does not say what is available they have their sizes.
    pub fn fit_ram(&self, meminfo: &str) {
        let mut known = lock(&self.ram_share);
        let (before, available) = (*known, available(meminfo));
        let is_short = self.ram.reserve > available.or(Some(u64::MAX));
        if before == ALL && !is_short && self.ram.pools.is_empty() {
            return;
        }
        let Ok(pools) = self.control.pool_list() else {
            return;
        };
        let wanted = |name: &str| self.ram.of(name);
        if let (Some(reserve), Some(available)) = (self.ram.reserve, available) {
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
                    "the host has {} available, less than host_reserve ({}): RAM tiers shrink to {} of their sizes",
                    format_bytes(available),
                    format_bytes(reserve),
                    part(now)
                );
            } else if now > before && now == ALL {
                tracing::info!("the host has memory again: RAM tiers have their sizes");
            }
        }
        for pool in pools {
            let bytes = u128::from(wanted(&pool.name)) * u128::from(*known) / u128::from(ALL);
            let bytes = bytes as u64;
            if bytes == pool.ram_limit {
                continue;
            }
            // It may have been closed meanwhile.
            if let Err(failed) = self.control.pool_set_ram(&pool.name, bytes) {
                tracing::debug!(pool = pool.name, %failed, "its RAM tier stays as it is");
            }
        }
    }
}
