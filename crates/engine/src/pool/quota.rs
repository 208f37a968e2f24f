//! Quotas: the most that a volume and its snapshots may take of the pool (docs/filling.md).

use super::shards::ask_all;
use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, VolumeChange, VolumeStatus};
use crate::shard::{Audit, ShardStatus};
use crate::space::Allowance;
use format::{PoolConfig, VolumeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{BLOCK, format_bytes};

/// What volumes with quotas may still store, by the volumes' numbers.
#[derive(Clone, Default)]
pub(crate) struct Allowances(BTreeMap<u32, Arc<Allowance>>);

/// A quota in blocks.
fn limit(bytes: u64) -> i64 {
    match bytes {
        0 => Allowance::UNLIMITED,
        bytes => (bytes / BLOCK as u64) as i64,
    }
}

/// What is being deleted may end, whatever it holds.
fn has_quota(volume: &VolumeConfig) -> bool {
    volume.quota > 0 && !volume.deleting
}

impl Allowances {
    /// Of a pool that is being opened: nothing counts yet.
    pub fn new(config: &PoolConfig) -> Self {
        let limited = config.volumes.iter().filter(|volume| has_quota(volume));
        let made = |volume: &VolumeConfig| Arc::new(Allowance::new(limit(volume.quota)));
        Self(limited.map(|volume| (volume.id, made(volume))).collect())
    }

    /// By the layers that count for them.
    pub fn of_layers(&self, config: &PoolConfig) -> BTreeMap<u32, Arc<Allowance>> {
        if self.0.is_empty() {
            return BTreeMap::new();
        }
        let holders = config.holders().into_iter();
        holders
            .filter_map(|(layer, volume)| Some((layer, self.0.get(&volume)?.clone())))
            .collect()
    }

    /// Compares what is counted for each volume with what shards found.
    pub fn audit(&self, config: &PoolConfig, audit: &mut Audit) {
        let limited: Vec<_> = config
            .volumes
            .iter()
            .filter(|volume| has_quota(volume))
            .collect();
        if limited.is_empty() {
            return;
        }
        let holders = config.holders();
        for volume in limited {
            let layers = audit.layers.iter();
            let mine = layers.filter(|(layer, _)| holders.get(layer) == Some(&volume.id));
            let has: u64 = mine.map(|(_, blocks)| blocks).sum();
            let known = self.0.get(&volume.id);
            let counted = known.map(|known| limit(volume.quota) - known.room());
            if counted != Some(has as i64) {
                let name = &volume.name;
                audit.count += 1;
                audit.wrong.push(format!(
                    "volume {name} with a quota counts {counted:?} blocks stored of {has}"
                ));
            }
        }
    }
}

/// Bytes that a volume and its snapshots store.
pub(super) fn held(holders: &BTreeMap<u32, u32>, volume: u32, shards: &[ShardStatus]) -> u64 {
    let layers = shards.iter().flat_map(|shard| &shard.volumes);
    let mine = layers.filter(|(layer, _)| holders.get(layer) == Some(&volume));
    let blocks: u64 = mine.map(|(_, totals)| totals.counts.mapped()).sum();
    blocks * BLOCK as u64
}

/// The quota of a volume of this size, whole blocks, as it is asked for.
///
/// # Errors
/// `Invalid` when there is none like it, or a thick volume could not be filled.
pub(super) fn check(name: &str, quota: u64, size: u64, thick: bool) -> Result<u64> {
    let quota = match format::whole_quota(quota) {
        Ok(quota) => quota,
        Err(wrong) => {
            let text = format!("volume {name} with {wrong}: choose a smaller one, or none");
            return error(ErrorCode::Invalid, text);
        }
    };
    if thick && quota > 0 && quota < size {
        let text = format!(
            "volume {name} is thick, and all of its {} are promised, more than a quota of {}: choose \
             a larger quota, or none",
            format_bytes(size),
            format_bytes(quota)
        );
        return error(ErrorCode::Invalid, text);
    }
    Ok(quota)
}

impl Pool {
    /// Tells the shards which layers count for which volumes' quotas. Whatever changes that, in the
    /// pool's description, is followed by this.
    pub(super) fn tell_allowances(&self) -> Result<()> {
        let allowances = lock(&self.allowances).clone();
        match allowances.0.is_empty() {
            true => Ok(()),
            false => self.tell(&allowances),
        }
    }

    fn tell(&self, allowances: &Allowances) -> Result<()> {
        let of = Arc::new(allowances.of_layers(&lock(&self.config)));
        ask_all(&self.shards, move |shard| {
            let of = of.clone();
            async move { shard.set_allowances(&of) }
        })
        .map(drop)
    }

    /// Counts what a volume holds from now on.
    fn begin_to_count(&self, volume: u32, limit: i64) -> Result<Arc<Allowance>> {
        let allowance = Arc::new(Allowance::new(limit));
        let all = {
            let mut all = lock(&self.allowances);
            all.0.insert(volume, allowance.clone());
            all.clone()
        };
        self.tell(&all).map(|()| allowance)
    }

    /// Counts what a volume holds no more.
    pub(super) fn end_count(&self, volume: u32) -> Result<()> {
        let left = {
            let mut all = lock(&self.allowances);
            all.0.remove(&volume).map(|_| all.clone())
        };
        left.map_or(Ok(()), |left| self.tell(&left))
    }

    /// A volume that was just made, with its quota, may take what that says.
    pub(super) fn count_new(&self, volume: &VolumeConfig) -> Result<()> {
        match has_quota(volume) {
            true => self
                .begin_to_count(volume.id, limit(volume.quota))
                .map(drop),
            false => Ok(()),
        }
    }

    /// Changes what a volume may take.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, `Refused` when it holds more already, or when no drive takes the
    /// label: all is as it was then.
    pub fn change_volume(&self, name: &str, change: &VolumeChange) -> Result<VolumeStatus> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(name)?;
        if volume.deleting {
            return error(ErrorCode::Busy, format!("volume {name} is being deleted"));
        }
        if let Some(quota) = change.quota {
            self.set_quota(&volume, quota)?;
        }
        let shards = self.shard_statuses()?;
        Ok(self.volume_status(&self.find_volume(name)?, &shards))
    }

    fn set_quota(&self, volume: &VolumeConfig, quota: u64) -> Result<()> {
        let quota = check(&volume.name, quota, volume.size, volume.thick)?;
        if quota == volume.quota {
            return Ok(());
        }
        let known = lock(&self.allowances).0.get(&volume.id).cloned();
        let allowance = match known {
            Some(known) => known,
            None => self.begin_to_count(volume.id, Allowance::UNLIMITED)?,
        };
        let more = limit(quota) - limit(volume.quota);
        let changed = match allowance.change(more) {
            true => self
                .update(|config| {
                    let volumes = config.volumes.iter_mut();
                    volumes
                        .filter(|known| known.id == volume.id)
                        .for_each(|known| known.quota = quota);
                    Ok(())
                })
                .inspect_err(|_| allowance.add(more)),
            false => {
                let holds = limit(volume.quota) - allowance.room();
                error(
                    ErrorCode::Refused,
                    format!(
                        "volume {} and its snapshots hold {} already, more than {}: choose a larger \
                         quota, discard data or delete snapshots",
                        volume.name,
                        format_bytes(holds.max(0) as u64 * BLOCK as u64),
                        format_bytes(quota)
                    ),
                )
            }
        };
        let stays = if changed.is_ok() { quota } else { volume.quota };
        if stays == 0 {
            self.end_count(volume.id)?;
        }
        changed
    }

    /// Does `act` while nothing is written to a volume with a quota.
    ///
    /// # Errors
    /// As `act`'s, or when the pool is closing.
    pub(super) fn while_held<T>(
        &self,
        volume: &VolumeConfig,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if !has_quota(volume) {
            return act();
        }
        let id = volume.id;
        ask_all(&self.shards, move |shard| async move { shard.hold(&[id]) })?;
        let done = act();
        ask_all(&self.shards, move |shard| async move {
            shard.let_go(std::iter::once(id));
        })?;
        done
    }

    /// Refuses what would have a volume hold more than its quota: `config` says what would count
    /// for it.
    ///
    /// # Errors
    /// `Refused`, or when the pool is closing.
    pub(super) fn check_quota(&self, volume: &VolumeConfig, config: &PoolConfig) -> Result<()> {
        if !has_quota(volume) {
            return Ok(());
        }
        let holds = held(&config.holders(), volume.id, &self.shard_statuses()?);
        if holds <= volume.quota {
            return Ok(());
        }
        error(
            ErrorCode::Refused,
            format!(
                "volume {} would hold {}, more than its quota of {}: raise that with \
                 `convect volume set`",
                volume.name,
                format_bytes(holds),
                format_bytes(volume.quota)
            ),
        )
    }
}
