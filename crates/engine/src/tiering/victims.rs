//! Which copies leave the fast tier next, by the policy and by volumes' settings.

use super::access_stats::chunk_of;
use super::settings::VolumeSettings;
use crate::control::explain::Cause;
use crate::shard::state::State;
use placement::Victim;

/// Chunks with copies that are examined to find one that is not pinned.
const LOOKED_AT: usize = 1024;

impl State {
    /// Whether some copy may be evicted from the fast tier, by a quick check.
    pub(super) fn has_victims(&self) -> bool {
        match self.limits.has_settings() {
            false => self.tier_index.has_clean(),
            true => {
                let may_leave = |chunk: &(u32, u32)| self.may_leave(*chunk, true) != 0;
                self.tier_index.any_clean(LOOKED_AT, may_leave)
            }
        }
    }

    /// The chunk and its extents to evict next according to the policy, and why; `all`: of volumes
    /// below their floors, too.
    pub(super) fn victim(&mut self, all: bool) -> Option<((u32, u32), u16, Cause)> {
        let Self {
            access,
            volumes,
            limits,
            tier_index,
            ..
        } = self;
        if !access.are_begun() {
            return None;
        }
        if !limits.has_settings() {
            return access.clean_victim().map(least);
        }
        let of = |layer: u32| {
            volumes
                .get(&layer)
                .and_then(|entry| entry.settings.as_deref())
        };
        if limits.is_any_over() {
            let is_over = |layer| of(layer).is_some_and(VolumeSettings::is_over);
            let drawn = access.clean_victim_of(is_over).map(one);
            // The excess may be so small that none of it is sampled.
            let next = || {
                let mut over = volumes.keys().filter(|layer| is_over(**layer));
                over.find_map(|layer| {
                    let settings = of(*layer)?;
                    tier_index.next_clean_of(*layer, |chunk| !settings.pinned(chunk).fast)
                })
            };
            if let Some((chunk, extents)) = drawn.or_else(next) {
                return Some((chunk, extents, Cause::EvictedOver));
            }
        }
        let weight = |layer| {
            let settings = of(layer);
            let may_leave = all || !settings.is_some_and(VolumeSettings::is_spared);
            may_leave.then(|| settings.map_or(1.0, VolumeSettings::weight))
        };
        access.clean_victim_by(weight).map(least)
    }

    /// Extents of a chunk that may leave the fast tier: none of a volume below its floor, unless
    /// `all` are wanted, and none that is pinned there.
    pub(super) fn may_leave(&self, (layer, chunk): (u32, u32), all: bool) -> u16 {
        match self.settings_of(layer) {
            None => u16::MAX,
            Some(settings) if !all && settings.is_spared() => 0,
            // In another layer it may be a snapshot's alone: that is examined when its turn comes.
            Some(settings) if layer == settings.live() => !settings.pinned(chunk).fast,
            Some(_) => u16::MAX,
        }
    }
}

fn one(victim: Victim) -> ((u32, u32), u16) {
    let (chunk, extent) = chunk_of(victim.extent);
    (chunk, 1 << extent)
}

fn least(victim: Victim) -> ((u32, u32), u16, Cause) {
    let (chunk, extents) = one(victim);
    (chunk, extents, Cause::EvictedLeast)
}
