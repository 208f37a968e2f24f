//! Forecasts for other sizes of the fast tier, for the hosts of this shard.
//!
//! [`Forecast`] owns what is learned for that: which blocks hosts use, from which the simulated tiers of other sizes
//! (`placement`'s miniature caches) tell their hit rates, and how long hosts' reads of each tier take recently. It learns
//! nothing before the mover has seen that there are two tiers, and nothing of initiators that are bypassed, which its
//! callers leave out. No decision depends on it: it serves capacity planning.

use crate::control::what_if::POINTS;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use placement::{Config, Told, WhatIf};
use std::collections::BTreeMap;
use units::BLOCK;

/// Weight of a read in the mean latency: one in this many.
const USUAL: u64 = 64;

/// Statistics of hosts' use of the tiers.
#[derive(Default)]
pub(crate) struct Forecast {
    sizes: Option<Box<WhatIf>>,
    /// Recent mean latency of hosts' reads of each tier.
    fast_ns: Option<u64>,
    slow_ns: Option<u64>,
}

impl Forecast {
    /// A volume's host reads (or, `write`, writes) blocks of a layer's chunk.
    #[inline]
    pub fn used(
        &mut self,
        volume: u32,
        chunk: (u32, u32),
        blocks: impl Iterator<Item = usize> + Clone,
        write: bool,
    ) {
        if let Some(sizes) = &mut self.sizes {
            sizes.used(volume, chunk, blocks, write);
        }
    }

    /// Records blocks of a host's read that were only on the slow tier.
    pub fn waited(&mut self, blocks: u64) {
        if let Some(sizes) = &mut self.sizes {
            sizes.waited(blocks);
        }
    }

    /// A layer was removed.
    pub(super) fn forget(&mut self, layer: u32) {
        if let Some(sizes) = &mut self.sizes {
            sizes.forget(layer);
        }
    }

    /// The tiers are of these sizes; it learns from the first time on.
    fn resize(&mut self, config: Config) {
        let sizes = &mut self.sizes;
        let known = sizes.get_or_insert_with(|| Box::new(WhatIf::new(config)));
        known.resize(config.fast_blocks, config.ram_blocks);
    }

    /// Records the latency of a host's read of a tier.
    #[inline]
    pub fn took(&mut self, class: Class, took_ns: u64) {
        let usual = match class {
            Class::Slow => &mut self.slow_ns,
            _ => &mut self.fast_ns,
        };
        *usual = Some(match *usual {
            Some(usual) => usual - usual / USUAL + took_ns / USUAL,
            None => took_ns,
        });
    }
}

/// Forecast of one shard; sizes are those of [`POINTS`].
#[derive(Clone, Debug)]
pub struct ShardForecast {
    /// Blocks of the fast tier that are the shard's.
    pub fast_blocks: u64,
    /// Of the pool, by the curve.
    pub all: [Told; POINTS.len()],
    /// The share of uses that the policy would answer without the slow tier: with half, with all, with twice.
    pub policy: [Option<f64>; 3],
    /// Of the recently used volumes: blocks that each has of the fast tier, and its curve.
    pub volumes: BTreeMap<u32, (u64, [Told; POINTS.len()])>,
    /// Latency of host reads by tier, in nanoseconds, if there was one.
    pub fast_ns: Option<u64>,
    pub slow_ns: Option<u64>,
}

impl Shard {
    /// Follows the sizes of the tiers. The first time it begins to examine what hosts use.
    pub(super) fn look_at_sizes(&self) {
        let config = self.policy_config(self.ram_limit());
        let mut state = self.state.borrow_mut();
        state.access.forecast().resize(config);
    }

    /// Forecasts for the pool, and for each volume with its present blocks of the fast tier; `holders`
    /// are the volumes that layers count for. `None` without two tiers.
    pub fn what_if(&self, holders: &BTreeMap<u32, u32>) -> Option<ShardForecast> {
        if !self.tiers.are_two() {
            return None;
        }
        let mut state = self.state.borrow_mut();
        let State {
            access, volumes, ..
        } = &mut *state;
        let Forecast {
            sizes: Some(what_if),
            fast_ns,
            slow_ns,
        } = access.forecast()
        else {
            return None;
        };
        let fast_blocks = self.fast_share();
        let ram_blocks = self.ram_limit() / BLOCK as u64;
        let mut has: BTreeMap<u32, u64> = BTreeMap::new();
        for (layer, entry) in volumes.iter() {
            if let Some(volume) = holders.get(layer) {
                *has.entry(*volume).or_default() += entry.counts.fast + entry.counts.clean;
            }
        }
        let of_volumes = has.iter().filter_map(|(volume, blocks)| {
            let sizes = POINTS.map(|percent| part(*blocks, percent));
            let told = what_if.of_volume(*volume, sizes)?;
            Some((*volume, (*blocks, told)))
        });
        let of_volumes = of_volumes.collect();
        Some(ShardForecast {
            fast_blocks,
            all: POINTS.map(|percent| what_if.all(part(fast_blocks, percent) + ram_blocks)),
            policy: what_if.policy(),
            volumes: of_volumes,
            fast_ns: *fast_ns,
            slow_ns: *slow_ns,
        })
    }
}

fn part(blocks: u64, percent: u64) -> u64 {
    (u128::from(blocks) * u128::from(percent) / 100) as u64
}
