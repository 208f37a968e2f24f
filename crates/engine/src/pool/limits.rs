//! Quotas and reservations: the most that a volume and its snapshots may take of the pool, and what
//! the pool keeps for them (docs/filling.md).

use super::allowances::{held, limit, promise};
use super::shards::ask_all;
use super::{Pool, Result, error, lock, settings, targets};
use crate::control::types::{ErrorCode, VolumeChange, VolumeStatus};
use crate::space::Allowance;
use format::{PoolConfig, VolumeConfig};
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, format_bytes};

/// Whether a volume's space is counted. A volume that is being deleted has no limits.
pub(super) fn has_limits(volume: &VolumeConfig) -> bool {
    (volume.quota > 0 || promise(volume) > 0) && !volume.deleting
}

/// The requested limits of a volume, in whole blocks.
///
/// # Errors
/// `Invalid` for limits out of range, or a reservation above the quota.
pub(super) fn check(volume: &mut VolumeConfig) -> Result<()> {
    let name = &volume.name;
    let whole = |what: &str, bytes: u64| match format::whole_limit(what, bytes) {
        Ok(bytes) => Ok(bytes),
        Err(wrong) => error(
            ErrorCode::Invalid,
            format!("volume {name} with {wrong}: choose a smaller one, or none"),
        ),
    };
    volume.quota = whole("quota", volume.quota)?;
    volume.reservation = whole("reservation", volume.reservation)?;
    let (quota, reservation) = (volume.quota, volume.reservation);
    if volume.thick && reservation > 0 {
        let text = format!(
            "volume {name} is thick, so all of its {} are reserved: only thin volumes have reservations",
            format_bytes(volume.size)
        );
        return error(ErrorCode::Invalid, text);
    }
    if volume.thick && quota > 0 && quota < volume.size {
        let text = format!(
            "volume {name} is thick, so all of its {} are reserved, more than a quota of {}: choose \
             a larger quota, or none",
            format_bytes(volume.size),
            format_bytes(quota)
        );
        return error(ErrorCode::Invalid, text);
    }
    if quota > 0 && quota < reservation {
        let text = format!(
            "volume {name} has a quota of {}, less than a reservation of {}: choose a larger quota or a \
             smaller reservation",
            format_bytes(quota),
            format_bytes(reservation)
        );
        return error(ErrorCode::Invalid, text);
    }
    Ok(())
}

impl Pool {
    /// Counters for a new volume, or one that gets limits; `None` without limits.
    ///
    /// # Errors
    /// `NoSpace` if its reservation exceeds the free space.
    pub(super) fn new_allowance(&self, volume: &VolumeConfig) -> Result<Option<Arc<Allowance>>> {
        if !has_limits(volume) {
            return Ok(None);
        }
        let allowance = Allowance::new(limit(volume));
        match allowance.promise(promise(volume), &self.shared.space) {
            true => Ok(Some(Arc::new(allowance))),
            false => self.cannot_promise(promise(volume)),
        }
    }

    fn cannot_promise<T>(&self, more: i64) -> Result<T> {
        let bytes = |blocks: i64| format_bytes(blocks.max(0) as u64 * BLOCK as u64);
        error(
            ErrorCode::NoSpace,
            format!(
                "{} more cannot be reserved: pool {} has {} that are neither used nor \
                 reserved; choose less, or add a vdrive",
                bytes(more),
                self.name,
                bytes(self.shared.space.available())
            ),
        )
    }

    /// Changes a volume's quota and reservation, its placement settings, its policy, and its targets.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, `Refused` if it already uses more than the quota or the fast tier has less
    /// than its guaranteed space, `NoSpace` if the pool lacks the space to reserve, or if no
    /// drive takes the label: nothing is changed then.
    pub fn change_volume(&self, name: &str, change: &VolumeChange) -> Result<VolumeStatus> {
        let _changing = lock(&self.changing);
        let before = self.find_volume(name)?;
        if before.deleting {
            return error(ErrorCode::Busy, format!("volume {name} is being deleted"));
        }
        let mut after = before.clone();
        after.quota = change.quota.unwrap_or(before.quota);
        after.reservation = change.reservation.unwrap_or(before.reservation);
        check(&mut after)?;
        after.knobs = settings::changed(&before, &change.knobs)?;
        after.targets = targets::changed(&before, &change.targets)?;
        if let Some(choice) = &change.policy {
            (after.policy, after.group) = self.choose_policy(Some(before.id), choice)?;
        }
        self.check_settings(&before, &after)?;
        if (after.quota, after.reservation) != (before.quota, before.reservation) {
            self.set_limits(&before, &after)?;
        } else if after != before {
            self.set_chosen(&after)?;
        }
        self.tell_settings()?;
        self.tell_tenants()?;
        let shards = self.shard_statuses()?;
        Ok(self.volume_status(&self.find_volume(name)?, &shards))
    }

    /// Changes a volume's description, and its counters: all or nothing.
    pub(super) fn set_limits(&self, before: &VolumeConfig, after: &VolumeConfig) -> Result<()> {
        let allowance = match self.allowance(before.id) {
            Some(known) => known,
            None => {
                let made = Arc::new(Allowance::new(Allowance::UNLIMITED));
                self.begin_to_count(before.id, made.clone())?;
                made
            }
        };
        let changed = self.change_limits(&allowance, before, after);
        let stays = if changed.is_ok() { after } else { before };
        if !has_limits(stays) {
            self.end_count(stays)?;
        }
        changed
    }

    fn change_limits(
        &self,
        allowance: &Allowance,
        before: &VolumeConfig,
        after: &VolumeConfig,
    ) -> Result<()> {
        let space = &self.shared.space;
        let quota = limit(after) - limit(before);
        if !allowance.change(quota) && !is_on(Mutation::QuotaBelow) {
            let holds = limit(before) - allowance.room();
            let text = format!(
                "volume {} and its snapshots already use {}, more than {}: choose a larger quota, \
                 discard data or delete snapshots",
                before.name,
                format_bytes(holds.max(0) as u64 * BLOCK as u64),
                format_bytes(after.quota)
            );
            return error(ErrorCode::Refused, text);
        }
        let more = promise(after) - promise(before);
        if more > 0 && !allowance.promise(more, space) {
            // Never less room than before: data written meanwhile is kept.
            allowance.allow(-quota);
            return self.cannot_promise(more);
        }
        let saved = self.update_soon(|config| {
            let volumes = config.volumes.iter_mut();
            volumes
                .filter(|known| known.id == after.id)
                .for_each(|known| {
                    known.size = after.size;
                    (known.quota, known.reservation) = (after.quota, after.reservation);
                    known.knobs = after.knobs.clone();
                    known.targets = after.targets;
                    (known.policy, known.group) = (after.policy, after.group);
                });
            Ok(())
        });
        match saved {
            Ok(()) if more < 0 => allowance.owe(more, space),
            Ok(()) => {}
            Err(_) => {
                allowance.allow(-quota);
                allowance.owe(-more.max(0), space);
            }
        }
        saved
    }

    /// Does `act` while nothing is written to volumes with limits.
    ///
    /// # Errors
    /// As `act`'s, or when the pool is closing.
    pub(super) fn while_quiesced<T>(
        &self,
        volumes: &[&VolumeConfig],
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let limited = volumes.iter().filter(|volume| has_limits(volume));
        let ids: Arc<[u32]> = limited.map(|volume| volume.id).collect();
        if ids.is_empty() {
            return act();
        }
        let quiesced = ids.clone();
        ask_all(&self.shards, move |shard| {
            let quiesced = quiesced.clone();
            async move { shard.quiesce_volumes(&quiesced) }
        })?;
        let done = act();
        ask_all(&self.shards, move |shard| {
            let ids = ids.clone();
            async move { shard.resume_volumes(ids.iter().copied()) }
        })?;
        done
    }

    /// Refuses a change by which volumes would exceed their quotas, or reservations the free
    /// space: `after` gives the new owners. Additional reservations are claimed here; the caller
    /// releases them once shards count by `after`.
    ///
    /// # Errors
    /// `Refused`, or when the pool is closing.
    pub(super) fn claim_move(&self, volumes: &[&VolumeConfig], after: &PoolConfig) -> Result<i64> {
        let are_limited = volumes.iter().any(|volume| has_limits(volume));
        if !are_limited || is_on(Mutation::PromoteUnclaimed) {
            return Ok(0);
        }
        let shards = self.shard_statuses()?;
        let (mine, theirs) = (self.config().holders(), after.holders());
        let mut needed = 0;
        for volume in volumes.iter().filter(|volume| has_limits(volume)) {
            let unused = |holds: i64| (promise(volume) - holds).max(0);
            let holds = held(&theirs, volume.id, &shards);
            needed += unused(holds) - unused(held(&mine, volume.id, &shards));
            if holds > limit(volume) {
                let text = format!(
                    "volume {} would use {}, more than its quota of {}: raise the quota with \
                     `convect volume set`",
                    volume.name,
                    format_bytes(holds as u64 * BLOCK as u64),
                    format_bytes(volume.quota)
                );
                return error(ErrorCode::Refused, text);
            }
        }
        match needed <= 0 || self.shared.space.claim(needed) {
            true => Ok(needed.max(0)),
            false => {
                let names: Vec<&str> = volumes
                    .iter()
                    .filter(|volume| promise(volume) > 0)
                    .map(|volume| volume.name.as_str())
                    .collect();
                let text = format!(
                    "the reservation of volume {} would cover less of its data than before, and the \
                     pool lacks the {} that this takes: reduce the reservation with `convect \
                     volume set`",
                    names.join(" and "),
                    format_bytes(needed as u64 * BLOCK as u64)
                );
                error(ErrorCode::Refused, text)
            }
        }
    }
}
