//! Placement settings of volumes (docs/placement.md), in the form that decisions need.
//!
//! Responsible for: which data of a volume may leave the fast tier, which may be promoted, and from whom
//! space is taken. Leaves out: choosing victims (`tiering/victims.rs`), and carrying it out (`tiering/pinning.rs`,
//! `tiering/mover.rs`, `tiering/promote.rs`).

use super::write_budget::Budget;
use crate::shard::state::{Shard, State, Volume};
use format::{BlockMask, KnobsConfig, QosConfig, ReactionConfig, TierConfig, VolumeConfig};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK_EXTENTS, EXTENT, EXTENT_BLOCKS};

/// Factor of the promotion margin for volumes that react sooner or later than
/// others.
const EAGER: f32 = 0.125;
const THRIFTY: f32 = 8.0;
/// Value on the fast tier by service level, relative to a volume without a policy.
const WORTH: [f32; 5] = [8.0, 3.0, 1.0, 1.0 / 3.0, 1.0 / 8.0];

/// Extents of a volume that are kept on a tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pin {
    /// Counted from the volume's first byte.
    pub extents: Range<u64>,
    pub tier: TierConfig,
}

/// Extents of a chunk that are pinned: bit 0 is its first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pinned {
    pub fast: u16,
    pub slow: u16,
}

/// What the policy of a volume, its own or its group's, says of its placement (docs/qos.md, "Placement hints").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PolicyHints {
    level: Option<u8>,
    reaction: ReactionConfig,
    /// Bytes of the fast tier that are guaranteed to the volume.
    fast_floor: u64,
    /// Millionths of the RAM cache that are.
    ram_ppm: u32,
}

impl PolicyHints {
    /// Those of one of a pool's volumes. What is guaranteed to a group is divided evenly among its volumes.
    pub fn of(qos: &QosConfig, volumes: &[VolumeConfig], volume: &VolumeConfig) -> Self {
        let Some(policy) = qos.policy_of(volume) else {
            return Self::default();
        };
        let sharers = qos.sharers(volume, volumes);
        let part = policy.fast_floor / sharers;
        Self {
            level: Some(policy.level),
            reaction: policy.reaction,
            fast_floor: part - part % BLOCK as u64,
            ram_ppm: (u64::from(policy.ram_percent) * 10_000 / sharers) as u32,
        }
    }

    /// A service level alone.
    #[cfg(test)]
    pub fn by_level(level: Option<u8>) -> Self {
        Self {
            level,
            ..Self::default()
        }
    }

    /// Bytes of the fast tier that are guaranteed to the volume.
    pub fn fast_floor(&self) -> u64 {
        self.fast_floor
    }

    /// Whether they change anything.
    pub fn affect_placement(&self) -> bool {
        let Self {
            level,
            reaction,
            fast_floor,
            ram_ppm,
        } = *self;
        weight_of(level) != 1.0
            || reaction != ReactionConfig::Normal
            || fast_floor > 0
            || ram_ppm > 0
    }
}

/// The settings of one volume, with counters over all shards. They are replaced when settings are
/// changed.
#[derive(Debug)]
pub struct VolumeSettings {
    /// Its active layer: another one after a snapshot.
    live: AtomicU32,
    promotes: bool,
    pins: Vec<Pin>,
    /// Blocks.
    floor: i64,
    ceiling: i64,
    reluctance: f32,
    /// Value of its data on the fast tier relative to volumes without a policy.
    weight: f32,
    /// The volume's number.
    volume: u32,
    /// Share of the RAM cache that is guaranteed to it, in millionths.
    ram_ppm: u32,
    /// Its write budget, if any.
    pub budget: Option<Arc<Budget>>,
    /// Blocks of its layers on the fast tier, and of promotions in flight.
    fast: AtomicI64,
}

/// Decision about an extent evicted from RAM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Admission {
    /// Not promoted.
    Never,
    /// Not promoted, since the pool's budget is used up.
    NotToday,
    /// Promoted.
    Always,
    /// Promoted if its value is this many times the margin.
    ByWorth(f32),
}

fn weight_of(level: Option<u8>) -> f32 {
    let weight = level.and_then(|level| WORTH.get(usize::from(level).checked_sub(1)?));
    match is_on(Mutation::PlacementUndue) {
        true => 1.0,
        false => weight.copied().unwrap_or(1.0),
    }
}

impl VolumeSettings {
    /// The settings from a volume's description and its policy. Those of the volume take precedence; of two floors the larger
    /// one counts.
    pub fn new(volume: &VolumeConfig, hints: PolicyHints, budget: Option<Arc<Budget>>) -> Self {
        let weight = weight_of(hints.level);
        let KnobsConfig {
            promotion_off,
            pins,
            fast_floor,
            fast_ceiling,
            reaction,
            write_budget: _,
            // Devices apply it (`device/initiator.rs`).
            bypass: _,
        } = &volume.knobs;
        let unit = EXTENT as u64;
        let pin = |pin: &format::PinConfig| Pin {
            extents: pin.offset / unit..pin.end() / unit,
            tier: pin.tier,
        };
        Self {
            live: AtomicU32::new(volume.live()),
            promotes: !promotion_off,
            pins: pins.iter().map(pin).collect(),
            floor: (*fast_floor.max(&hints.fast_floor) / BLOCK as u64) as i64,
            ceiling: match fast_ceiling {
                0 => i64::MAX,
                bytes => (bytes / BLOCK as u64) as i64,
            },
            reluctance: match (reaction, hints.reaction) {
                (ReactionConfig::Normal, ReactionConfig::Normal) => 1.0 / weight,
                (ReactionConfig::Eager, _) | (ReactionConfig::Normal, ReactionConfig::Eager) => {
                    EAGER
                }
                _ => THRIFTY,
            },
            weight,
            volume: volume.id,
            ram_ppm: hints.ram_ppm,
            budget,
            fast: AtomicI64::new(0),
        }
    }

    /// The volume's layer that takes writes.
    pub(crate) fn live(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// Blocks that its layers have on the fast tier.
    pub fn fast(&self) -> i64 {
        self.fast.load(Ordering::Relaxed)
    }

    /// A layer has more, or fewer, blocks on the fast tier.
    pub(crate) fn note(&self, blocks: i64) {
        if blocks != 0 {
            self.fast.fetch_add(blocks, Ordering::Relaxed);
        }
    }

    /// Value of its data on the fast tier relative to others.
    pub(super) fn weight(&self) -> f32 {
        self.weight
    }

    /// Whether what it has in RAM stays there for a round longer.
    pub(crate) fn stays_in_ram(&self) -> bool {
        self.weight > 1.0
    }

    /// The volume's number.
    pub(crate) fn volume(&self) -> u32 {
        self.volume
    }

    /// Whether it exceeds its ceiling.
    pub(super) fn is_over(&self) -> bool {
        self.fast() > self.ceiling
    }

    /// Whether other volumes are evicted first.
    pub(super) fn is_spared(&self) -> bool {
        self.floor > 0 && self.fast() <= self.floor
    }

    pub(super) fn pins(&self, tier: TierConfig) -> impl Iterator<Item = &Pin> {
        self.pins.iter().filter(move |pin| pin.tier == tier)
    }

    /// Extents of a chunk that are pinned.
    pub(super) fn pinned(&self, chunk: u32) -> Pinned {
        let mut pinned = Pinned::default();
        let first = u64::from(chunk) * CHUNK_EXTENTS as u64;
        let end = first + CHUNK_EXTENTS as u64;
        let from = self.pins.partition_point(|pin| pin.extents.end <= first);
        for pin in self.pins[from..]
            .iter()
            .take_while(|pin| pin.extents.start < end)
        {
            let low = pin.extents.start.max(first) - first;
            let high = pin.extents.end.min(end) - first;
            let extents = ((1u32 << high) - (1u32 << low)) as u16;
            match pin.tier {
                TierConfig::Fast => pinned.fast |= extents,
                TierConfig::Slow => pinned.slow |= extents,
            }
        }
        pinned
    }

    /// Decision about an extent of a layer that is evicted from RAM.
    fn admission(&self, (layer, chunk): (u32, u32), extent: usize, now_ns: u64) -> Admission {
        let pinned = self.pinned(chunk);
        let has = |extents: u16| extents >> extent & 1 == 1;
        let budget = self.budget.as_ref();
        if has(pinned.slow) || budget.is_some_and(|budget| budget.is_empty(now_ns)) {
            return Admission::Never;
        }
        // Some blocks of other layers belong only to a snapshot.
        if has(pinned.fast) && layer == self.live() {
            return Admission::Always;
        }
        match self.promotes && self.fast() < self.ceiling {
            true => Admission::ByWorth(self.reluctance),
            false => Admission::Never,
        }
    }

    /// The maximum blocks on the fast tier after promoting some of an extent; `None` if they must
    /// not be promoted.
    pub(crate) fn most(&self, chunk: (u32, u32), extent: usize, now_ns: u64) -> Option<i64> {
        match self.admission(chunk, extent, now_ns) {
            Admission::Never | Admission::NotToday => None,
            Admission::Always => Some(i64::MAX),
            Admission::ByWorth(_) => Some(self.ceiling),
        }
    }

    /// Counts blocks as on the fast tier, unless it then exceeds `most`.
    pub(super) fn take_room(&self, most: i64, blocks: i64) -> bool {
        let more = |fast: i64| (fast <= most - blocks).then(|| fast + blocks);
        let taken = (self.fast).fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        taken.is_ok()
    }
}

impl Volume {
    /// Blocks that the layer has on the fast tier.
    pub(crate) fn fast(&self) -> i64 {
        (self.counts.fast + self.counts.clean) as i64
    }

    /// Applies these settings, which count its blocks on the fast tier.
    fn go_by(&mut self, settings: Option<Arc<VolumeSettings>>) {
        let has = self.fast();
        let before = std::mem::replace(&mut self.settings, settings);
        before.iter().for_each(|settings| settings.note(-has));
        self.settings.iter().for_each(|settings| settings.note(has));
    }
}

/// Decision about an extent of a chunk evicted from RAM, with a budget of the pool or
/// without.
pub(crate) fn admission(
    volumes: &BTreeMap<u32, Volume>,
    budget: Option<&Budget>,
    chunk: (u32, u32),
    extent: usize,
    now_ns: u64,
) -> Admission {
    let settings = volumes
        .get(&chunk.0)
        .and_then(|entry| entry.settings.as_ref());
    let admission = settings.map_or(Admission::ByWorth(1.0), |settings| {
        settings.admission(chunk, extent, now_ns)
    });
    match budget {
        Some(budget) if admission != Admission::Never && budget.is_empty(now_ns) => {
            Admission::NotToday
        }
        _ => admission,
    }
}

/// Blocks of some extents of a chunk.
pub(super) fn blocks_of(extents: u16) -> BlockMask {
    let blocks =
        (0..CHUNK_EXTENTS * EXTENT_BLOCKS).filter(|at| extents >> (at / EXTENT_BLOCKS) & 1 == 1);
    blocks.collect()
}

impl State {
    /// The settings of a layer's volume, if any.
    pub(crate) fn settings_of(&self, layer: u32) -> Option<&Arc<VolumeSettings>> {
        match self.limits.has_settings() {
            true => self.volumes.get(&layer)?.settings.as_ref(),
            false => None,
        }
    }

    /// Transfers the settings of the previous active layer to the new one.
    pub(crate) fn pass_settings(&mut self, from: u32, to: u32) {
        let Some(settings) = self.settings_of(from).cloned() else {
            return;
        };
        settings.live.store(to, Ordering::Relaxed);
        if let Some(entry) = self.volumes.get_mut(&to) {
            entry.go_by(Some(settings));
        }
        self.tell_held();
    }

    /// Reports to the policy which extents are kept on the fast tier.
    pub(super) fn tell_held(&mut self) {
        let volumes = &self.volumes;
        self.access.hold(|| {
            let mut held = Vec::new();
            for (layer, entry) in volumes {
                let pins = entry
                    .settings
                    .iter()
                    .flat_map(|settings| settings.pins(TierConfig::Fast));
                held.extend(pins.map(|pin| (*layer, pin.extents.clone())));
            }
            held
        });
    }
}

impl Shard {
    /// Sets whose settings apply to layers; others have none.
    pub fn set_settings(&self, of: &BTreeMap<u32, Arc<VolumeSettings>>) {
        let mut state = self.state.borrow_mut();
        let mut all: Vec<Arc<VolumeSettings>> = Vec::new();
        for (layer, entry) in &mut state.volumes {
            entry.go_by(of.get(layer).cloned());
            if let Some(settings) = &entry.settings
                && !all.iter().any(|known| Arc::ptr_eq(known, settings))
            {
                all.push(settings.clone());
            }
        }
        let parts = all.iter().filter(|settings| settings.ram_ppm > 0);
        let parts = parts.map(|settings| (settings.volume, settings.ram_ppm));
        let parts = parts.collect();
        state.limits.set_settings(all);
        let State { ram, volumes, .. } = &mut *state;
        ram.guarantee(parts, |layer| {
            let settings = volumes.get(&layer)?.settings.as_ref()?;
            Some(settings.volume)
        });
        state.tell_held();
        drop(state);
        self.moves.wake_mover();
        self.raise_soon();
    }

    /// Blocks of a layer's chunk that are pinned to the fast tier: not those that only a snapshot has, as far
    /// as visible.
    pub(super) async fn pinned_blocks(&self, (layer, chunk): (u32, u32)) -> BlockMask {
        let (live, extents) = match self.state.borrow().settings_of(layer) {
            Some(settings) => (settings.live(), settings.pinned(chunk).fast),
            None => return BlockMask::default(),
        };
        let blocks = blocks_of(extents);
        if layer == live || blocks.is_empty() {
            return blocks;
        }
        let mine = self.look(|state| {
            let owned = state.owned(live, chunk, blocks);
            Ok(owned.map(|owned| {
                let mine = owned.parts.iter().filter(|(of, _, _)| *of == layer);
                mine.fold(BlockMask::default(), |all, (_, _, part)| all.or(*part))
            }))
        });
        mine.await.unwrap_or(blocks)
    }

    /// Blocks of a layer's chunk that demotion must not take off the fast tier: those that are pinned there, and
    /// all while the volume is below its floor and no host waits for space.
    pub(super) async fn stays_fast(&self, chunk: (u32, u32)) -> BlockMask {
        if self.moves.is_cooling() {
            return BlockMask::default();
        }
        let spared = {
            let state = self.state.borrow();
            state
                .settings_of(chunk.0)
                .is_some_and(|settings| settings.is_spared())
        };
        match spared && !self.space_waiters.are_any() {
            true => blocks_of(u16::MAX),
            false => self.pinned_blocks(chunk).await,
        }
    }
}

#[cfg(test)]
mod tests;
