//! Settings of volumes: placement settings (docs/placement.md), changed while volumes are
//! used.

use super::shards::ask_all;
use super::{Pool, Result, error, lock};
use crate::control::knobs::{KnobsChange, KnobsStatus, Pin};
use crate::control::types::{ErrorCode, IoCounters, Tier};
use crate::shard::{Audit, Budget, PolicyHints, VolumeSettings};
use format::{KnobsConfig, PoolConfig, TierConfig, VolumeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, VdriveId, format_bytes};

/// Settings with their sources: a volume's description, and its policy's hints.
type Made = (VolumeConfig, PolicyHints, Arc<VolumeSettings>);

/// The settings of the volumes that have some, or whose policy affects their placement, by volume number.
#[derive(Default)]
pub(crate) struct AllSettings(BTreeMap<u32, Made>);

fn hints_of(config: &PoolConfig, volume: &VolumeConfig) -> PolicyHints {
    PolicyHints::of(&config.qos, &config.volumes, volume)
}

/// Bytes of the fast tier that a volume has for itself by its settings or its policy.
fn claimed_by(config: &PoolConfig, volume: &VolumeConfig) -> u64 {
    let hints = hints_of(config, volume);
    volume.knobs.claimed(volume.size).max(hints.fast_floor())
}

/// The same of all volumes together, and of groups that have none yet.
fn claimed_by_all(config: &PoolConfig) -> u64 {
    let volumes = config.volumes.iter().filter(|volume| !volume.deleting);
    let empty = config.qos.groups.iter().filter(|group| {
        let mut volumes = volumes.clone();
        volumes.all(|volume| volume.group != group.id)
    });
    let floors = empty.filter_map(|group| Some(config.qos.policy(group.policy)?.fast_floor));
    floors.sum::<u64>()
        + volumes
            .clone()
            .map(|volume| claimed_by(config, volume))
            .sum::<u64>()
}

impl AllSettings {
    /// Applies a pool's description. False if there were and are no settings.
    pub fn follow(&mut self, config: &PoolConfig) -> bool {
        let had = !self.0.is_empty();
        let with = config.volumes.iter();
        let with = with.filter(|volume| {
            let chosen = volume.knobs != KnobsConfig::default();
            (chosen || hints_of(config, volume).affect_placement()) && !volume.deleting
        });
        let mut next = BTreeMap::new();
        for volume in with {
            let known = self.0.remove(&volume.id);
            let hints = hints_of(config, volume);
            let same = known.as_ref().filter(|(of, was, _)| {
                (&of.knobs, of.live(), *was) == (&volume.knobs, volume.live(), hints)
            });
            let settings = match same {
                Some((_, _, settings)) => settings.clone(),
                None => {
                    let budget = known.and_then(|(_, _, settings)| settings.budget.clone());
                    let daily = volume.knobs.write_budget;
                    let budget = budget.filter(|budget| budget.daily() == daily);
                    let new = (daily > 0).then(|| Arc::new(Budget::new(daily)));
                    Arc::new(VolumeSettings::new(volume, hints, budget.or(new)))
                }
            };
            next.insert(volume.id, (volume.clone(), hints, settings));
        }
        self.0 = next;
        had || !self.0.is_empty()
    }

    /// By the layers that they apply to.
    pub fn of_layers(&self, config: &PoolConfig) -> BTreeMap<u32, Arc<VolumeSettings>> {
        let holders = config.holders().into_iter();
        holders
            .filter_map(|(layer, volume)| Some((layer, self.0.get(&volume)?.2.clone())))
            .collect()
    }

    /// Blocks that each of those volumes is known to have on the fast tier.
    pub fn fast(&self) -> BTreeMap<u32, i64> {
        let all = self.0.iter();
        all.map(|(id, (_, _, settings))| (*id, settings.fast()))
            .collect()
    }

    /// Compares that with the shards' findings, unless it has changed since `before`: pinned data
    /// is promoted even while the pool is idle.
    pub fn audit(&self, config: &PoolConfig, before: &BTreeMap<u32, i64>, audit: &mut Audit) {
        let holders = config.holders();
        let still = |id: &u32, settings: &VolumeSettings| before.get(id) == Some(&settings.fast());
        let all = self.0.iter();
        for (id, (volume, _, settings)) in all.filter(|(id, (_, _, settings))| still(id, settings))
        {
            let layers = audit.fast.iter();
            let mine = layers.filter(|(layer, _)| holders.get(layer) == Some(id));
            let has = mine.map(|(_, blocks)| blocks).sum::<u64>() as i64;
            if settings.fast() != has {
                let (name, counted) = (&volume.name, settings.fast());
                audit.count += 1;
                audit.wrong.push(format!(
                    "volume {name} counts {counted} blocks on the fast tier, and has {has}"
                ));
            }
        }
    }
}

fn tier_of(tier: Tier) -> TierConfig {
    match tier {
        Tier::Fast => TierConfig::Fast,
        Tier::Slow => TierConfig::Slow,
    }
}

/// The requested settings of a volume.
///
/// # Errors
/// `Invalid` for impossible settings.
pub(super) fn changed(volume: &VolumeConfig, change: &KnobsChange) -> Result<KnobsConfig> {
    let mut settings = volume.knobs.clone();
    let wrong = |wrong: String| {
        let text = format!("volume {} would have {wrong}: choose others", volume.name);
        error(ErrorCode::Invalid, text)
    };
    let whole = |what, asked: Option<u64>, before| match asked {
        None => Ok(before),
        Some(bytes) => format::whole_limit(what, bytes),
    };
    let limits = whole("floor", change.fast_floor, settings.fast_floor)
        .and_then(|floor| {
            Ok((
                floor,
                whole("ceiling", change.fast_ceiling, settings.fast_ceiling)?,
            ))
        })
        .and_then(|(floor, ceiling)| {
            let budget = whole("write budget", change.write_budget, settings.write_budget)?;
            Ok((floor, ceiling, budget))
        });
    match limits {
        Ok(limits) => {
            (
                settings.fast_floor,
                settings.fast_ceiling,
                settings.write_budget,
            ) = limits
        }
        Err(text) => return wrong(text),
    }
    settings.promotion_off = change.promotion.map_or(settings.promotion_off, |on| !on);
    if let Some(names) = &change.bypass
        && let Err(text) = settings.bypass(names)
    {
        return error(ErrorCode::Invalid, text);
    }
    settings.reaction = change.reaction.map_or(settings.reaction, Into::into);
    for pin in &change.pins {
        if pin.length == Some(0) || pin.offset >= volume.size {
            return wrong(format!(
                "a pin of {} bytes from byte {}, beyond its {} bytes",
                pin.length
                    .map_or("all".to_owned(), |bytes| bytes.to_string()),
                pin.offset,
                volume.size
            ));
        }
        let length = pin.length.unwrap_or(0);
        if let Err(text) = settings.pin(pin.offset, length, pin.tier.map(tier_of)) {
            return wrong(text);
        }
    }
    Ok(settings)
}

/// Placement settings of a volume, with their status.
pub(super) fn status(
    settings: &KnobsConfig,
    budget: Option<&Budget>,
    bypassed: &IoCounters,
) -> KnobsStatus {
    let pin = |pin: &format::PinConfig| Pin {
        offset: pin.offset,
        length: Some(pin.length).filter(|length| *length > 0),
        tier: match pin.tier {
            TierConfig::Fast => Tier::Fast,
            TierConfig::Slow => Tier::Slow,
        },
    };
    KnobsStatus {
        promotion: !settings.promotion_off,
        pins: settings.pins.iter().map(pin).collect(),
        fast_floor: settings.fast_floor,
        fast_ceiling: settings.fast_ceiling,
        reaction: settings.reaction.into(),
        bypass: settings.bypass.clone(),
        bypassed: [
            bypassed.bypassed_reads,
            bypassed.bypassed_writes,
            bypassed.bypassed_blocks,
        ],
        write_budget: settings.write_budget,
        budget_used: budget.map_or(0, Budget::used),
        budget_left: budget.map_or(0, Budget::left),
    }
}

impl Pool {
    /// The write budget of a volume, if it has one.
    pub(super) fn budget(&self, volume: u32) -> Option<Arc<Budget>> {
        let all = lock(&self.settings);
        all.0.get(&volume)?.2.budget.clone()
    }

    /// Tells the shards whose settings apply to layers. Every change of that in the pool's description is
    /// followed by this.
    pub(super) fn tell_settings(&self) -> Result<()> {
        let of = {
            let config = lock(&self.config);
            lock(&self.initiators).follow(&config);
            let mut all = lock(&self.settings);
            match all.follow(&config) {
                false => return Ok(()),
                true => Arc::new(all.of_layers(&config)),
            }
        };
        ask_all(&self.shards, move |shard| {
            let of = of.clone();
            async move { shard.set_settings(&of) }
        })
        .map(drop)
    }

    /// Bytes of the fast tier that volumes can claim: without the reserve for writes.
    fn fast_room(&self, config: &PoolConfig, without: Option<u8>) -> u64 {
        let vdrives = config.vdrives.iter();
        let stays = vdrives.filter(|vdrive| {
            vdrive.tier == TierConfig::Fast && !vdrive.evacuating && Some(vdrive.id) != without
        });
        let spaces = stays.filter_map(|vdrive| self.shared.groups.space(VdriveId(vdrive.id)));
        let groups: u64 = spaces.map(|space| u64::from(space.groups)).sum();
        let blocks = groups * config.group_blocks;
        (blocks - blocks / 16) * BLOCK as u64
    }

    /// Refuses settings in a volume's description that the pool cannot meet.
    ///
    /// # Errors
    /// `Invalid` if the tier is missing or settings contradict each other, `Refused` if others were guaranteed
    /// too much of the fast tier.
    pub(super) fn check_settings(&self, before: &VolumeConfig, after: &VolumeConfig) -> Result<()> {
        let config = self.config();
        let (name, settings, size) = (&after.name, &after.knobs, after.size);
        for (tier, word) in [(TierConfig::Fast, "fast"), (TierConfig::Slow, "slow")] {
            let has = config.vdrives.iter().any(|vdrive| vdrive.tier == tier);
            if !has && settings.pins.iter().any(|pin| pin.tier == tier) {
                let text = format!(
                    "volume {name} cannot be pinned to the {word} tier, which pool {} does not have: add a \
                     {word} vdrive first",
                    self.name
                );
                return error(ErrorCode::Invalid, text);
            }
        }
        let (floor, ceiling) = (settings.fast_floor, settings.fast_ceiling);
        let claimed = settings.claimed(size);
        if ceiling > 0 && claimed > ceiling {
            let (what, more) = match claimed == floor {
                true => ("a floor of", floor),
                false => ("pins of", claimed),
            };
            let text = format!(
                "volume {name} would have {what} {} on the fast tier, above its ceiling of {}: choose a \
                 larger ceiling, or reduce the other",
                format_bytes(more),
                format_bytes(ceiling)
            );
            return error(ErrorCode::Invalid, text);
        }
        if claimed <= before.knobs.claimed(before.size) {
            return Ok(());
        }
        let others = config.volumes.iter();
        let others = others.filter(|volume| volume.id != after.id && !volume.deleting);
        let others: u64 = others.map(|volume| claimed_by(&config, volume)).sum();
        let room = self.fast_room(&config, None);
        if claimed.saturating_add(others) <= room {
            return Ok(());
        }
        let text = format!(
            "volume {name} would claim {} of the fast tier by pins or its floor; other volumes claim {}, \
             and pool {} has {} for that besides its reserve for writes: choose less, or add a fast vdrive",
            format_bytes(claimed),
            format_bytes(others),
            self.name,
            format_bytes(room)
        );
        error(ErrorCode::Refused, text)
    }

    /// Refuses a description whose policies and settings guarantee more than the fast tier has, and than they do now;
    /// `new`: bytes for a volume to be created.
    ///
    /// # Errors
    /// `Refused`.
    pub(super) fn check_floors(&self, planned: &PoolConfig, new: u64) -> Result<()> {
        let (claimed, room) = self.fast_claims(planned, new);
        if claimed <= room || claimed <= claimed_by_all(&self.config()) {
            return Ok(());
        }
        let text = format!(
            "{} of the fast tier would be guaranteed to volumes by policies, pins and floors, and pool {} has {} for \
             that beside what is kept for writes: choose a smaller fast floor, or --overcommit to have volumes share \
             what there is",
            format_bytes(claimed),
            self.name,
            format_bytes(room)
        );
        error(ErrorCode::Refused, text)
    }

    /// Bytes of the fast tier that a description guarantees to volumes, with `new` more, and those that can be.
    pub(super) fn fast_claims(&self, config: &PoolConfig, new: u64) -> (u64, u64) {
        let claimed = claimed_by_all(config).saturating_add(new);
        (claimed, self.fast_room(config, None))
    }

    /// Refuses to remove a vdrive whose space is claimed by volumes' settings.
    ///
    /// # Errors
    /// `Refused`.
    pub(super) fn check_settings_without(&self, vdrive: u8, config: &PoolConfig) -> Result<()> {
        let claimed = claimed_by_all(config);
        let room = self.fast_room(config, Some(vdrive));
        if claimed <= room || room == self.fast_room(config, None) {
            return Ok(());
        }
        let text = format!(
            "vdrive {vdrive} cannot be removed: pins, floors and policies claim {} of the fast tier, and {} would \
             remain for them: first reduce those with `convect volume set`",
            format_bytes(claimed),
            format_bytes(room)
        );
        error(ErrorCode::Refused, text)
    }

    /// Changes a volume's settings, targets and policy, as they were checked.
    pub(super) fn set_chosen(&self, after: &VolumeConfig) -> Result<()> {
        self.update_soon(|config| {
            let volumes = config.volumes.iter_mut();
            volumes
                .filter(|known| known.id == after.id)
                .for_each(|known| {
                    known.knobs = after.knobs.clone();
                    known.targets = after.targets;
                    if !is_on(Mutation::PolicyUnsaved) {
                        (known.policy, known.group) = (after.policy, after.group);
                    }
                });
            Ok(())
        })
    }
}
