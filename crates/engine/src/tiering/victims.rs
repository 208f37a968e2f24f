//! Which copies leave the fast tier next, by the policy and by volumes' settings.

use super::access_stats::chunk_of;
use super::settings::VolumeSettings;
use crate::control::explain::Cause;
use crate::shard::state::State;
use placement::Victim;
use std::collections::BTreeSet;

/// Chunks with copies that are looked at to find one that is not pinned.
const LOOKED_AT: usize = 1024;

impl State {
    /// Whether some copy may leave the fast tier, as far as is seen soon.
    pub(super) fn has_victims(&self) -> bool {
        match self.settings.is_empty() {
            true => !self.clean_chunks.is_empty(),
            false => {
                let mut chunks = self.clean_chunks.iter().take(LOOKED_AT);
                chunks.any(|chunk| self.may_leave(*chunk, true) != 0)
            }
        }
    }

    /// The chunk and its extents of which copies should leave next by what the policy says, and why; `all`: of volumes
    /// below their floors, too.
    pub(super) fn victim(&mut self, all: bool) -> Option<((u32, u32), u16, Cause)> {
        let Self {
            policy,
            volumes,
            settings,
            clean_chunks,
            over_hand,
            ..
        } = self;
        let policy = policy.as_mut()?;
        if settings.is_empty() {
            return policy.clean_victim().map(least);
        }
        let of = |layer: u32| {
            volumes
                .get(&layer)
                .and_then(|entry| entry.settings.as_deref())
        };
        if settings.iter().any(|settings| settings.is_over()) {
            let is_over = |layer| of(layer).is_some_and(VolumeSettings::is_over);
            let drawn = policy.clean_victim_of(is_over).map(one);
            // What is over may be so little of all that none of it is drawn.
            let next = || {
                let mut over = volumes.keys().filter(|layer| is_over(**layer));
                over.find_map(|layer| next_unpinned(clean_chunks, of(*layer)?, *layer, over_hand))
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
        policy.clean_victim_by(weight).map(least)
    }

    /// Extents of a chunk that may leave the fast tier: none of a volume below its floor, unless
    /// `all` are wanted, and none that is pinned there.
    pub(super) fn may_leave(&self, (layer, chunk): (u32, u32), all: bool) -> u16 {
        match self.settings_of(layer) {
            None => u16::MAX,
            Some(settings) if !all && settings.is_spared() => 0,
            // In another layer it may be a snapshot's alone: that is looked at when its turn comes.
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

/// The next chunk of a layer with copies that are not pinned, after the one that `hand` names.
fn next_unpinned(
    clean_chunks: &BTreeSet<(u32, u32)>,
    settings: &VolumeSettings,
    layer: u32,
    hand: &mut (u32, u32),
) -> Option<((u32, u32), u16)> {
    let from = match hand.0 == layer {
        true => hand.1.saturating_add(1),
        false => 0,
    };
    let after = clean_chunks.range((layer, from)..=(layer, u32::MAX));
    let mut chunks = after.chain(clean_chunks.range((layer, 0)..(layer, from)));
    let found = chunks.find_map(|chunk| {
        let free = !settings.pinned(chunk.1).fast;
        (free != 0).then_some((*chunk, free))
    })?;
    *hand = found.0;
    Some(found)
}
