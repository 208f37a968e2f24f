//! Schedules of snapshots: kept in the labels. Leaves out: which snapshots are due, and which are deleted.

use super::group_snapshot::{GROUP_MAX, NewSnapshot};
use super::{Pool, Result, error, lock, plan};
use crate::control::types::{
    ErrorCode, ScheduleSpec, ScheduleStatus, ScheduleTurn, SnapshotStatus,
};
use format::{PoolConfig, ScheduleConfig};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest name, in bytes: a time is added to it.
const NAME_MAX: usize = 40;
/// Most schedules of a volume.
const OF_VOLUME_MAX: usize = 16;
/// Range of the interval, in seconds.
const EVERY_S: std::ops::RangeInclusive<u64> = 60..=366 * 86_400;
/// Range of snapshots kept per volume.
const KEEP: std::ops::RangeInclusive<u32> = 1..=1000;

impl Pool {
    /// Sets a schedule of snapshots of volumes. The volumes leave the schedules of this name
    /// that they were in. A schedule with the same volumes and another number to keep continues
    /// where it was; any other starts at `now_s`, seconds since 1970.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, `Refused` (thick volumes), or if no drive takes the label: nothing is
    /// changed then.
    pub fn set_schedule(&self, spec: &ScheduleSpec, now_s: u64) -> Result<ScheduleStatus> {
        let _changing = lock(&self.changing);
        check(spec)?;
        let mut volumes = Vec::new();
        for name in &spec.volumes {
            let volume = self.changeable(name)?;
            if volumes.contains(&volume.id) {
                return error(
                    ErrorCode::Invalid,
                    format!("volume {name} is given twice: specify it once"),
                );
            }
            self.check_room(volume.id, name, &spec.name)?;
            volumes.push(volume.id);
        }
        self.update_soon(|config| {
            let same = config.schedules.iter_mut().find(|known| {
                known.name == spec.name
                    && known.every_s == spec.every_s
                    && BTreeSet::from_iter(&known.volumes) == BTreeSet::from_iter(&volumes)
            });
            if let Some(known) = same {
                known.keep = spec.keep;
                return Ok(());
            }
            for volume in &volumes {
                config.unschedule(*volume, Some(&spec.name));
            }
            config.schedules.push(ScheduleConfig {
                name: spec.name.clone(),
                volumes: volumes.clone(),
                every_s: spec.every_s,
                keep: spec.keep,
                since_s: now_s,
                last_s: 0,
                missed: 0,
                missed_since_s: 0,
            });
            Ok(())
        })?;
        let config = self.config();
        let set = self.find_schedule(&config, volumes[0], &spec.name)?;
        Ok(self.schedule_status(&config, set))
    }

    fn check_room(&self, volume: u32, name: &str, schedule: &str) -> Result<()> {
        let config = lock(&self.config);
        let others = config
            .schedules
            .iter()
            .filter(|known| known.name != schedule && known.volumes.contains(&volume));
        match others.count() < OF_VOLUME_MAX {
            true => Ok(()),
            false => error(
                ErrorCode::Refused,
                format!(
                    "volume {name} has {OF_VOLUME_MAX} schedules, the maximum: delete \
                     one, see `convect snapshot schedule list`"
                ),
            ),
        }
    }

    fn find_schedule<'a>(
        &self,
        config: &'a PoolConfig,
        volume: u32,
        name: &str,
    ) -> Result<&'a ScheduleConfig> {
        match config
            .schedules
            .iter()
            .find(|known| known.name == name && known.volumes.contains(&volume))
        {
            Some(found) => Ok(found),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "this volume has no schedule '{name}': see `convect snapshot schedule \
                     list`"
                ),
            ),
        }
    }

    /// The pool's schedules, or those of one volume, in the order in which they were set.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn schedules(&self, volume: Option<&str>) -> Result<Vec<ScheduleStatus>> {
        let only = volume.map(|name| self.find_volume(name)).transpose()?;
        let config = self.config();
        let found = config.schedules.iter().filter(|known| {
            only.as_ref()
                .is_none_or(|only| known.volumes.contains(&only.id))
        });
        Ok(found
            .map(|known| self.schedule_status(&config, known))
            .filter(|status| !status.volumes.is_empty())
            .collect())
    }

    fn schedule_status(&self, config: &PoolConfig, schedule: &ScheduleConfig) -> ScheduleStatus {
        let volumes = config
            .volumes
            .iter()
            .filter(|volume| !volume.deleting && schedule.volumes.contains(&volume.id));
        let missed = Some(schedule.missed_since_s).filter(|_| schedule.missed > 0);
        ScheduleStatus {
            name: schedule.name.clone(),
            pool: self.name.clone(),
            volumes: volumes.map(|volume| volume.name.clone()).collect(),
            every_s: schedule.every_s,
            keep: schedule.keep,
            since_s: schedule.since_s,
            last_s: Some(schedule.last_s).filter(|last_s| *last_s > 0),
            missed: schedule.missed,
            missed_since_s: missed,
        }
    }

    /// Removes a volume from a schedule, which is deleted with its last one. Its snapshots are kept.
    ///
    /// # Errors
    /// `NotFound`, or when no drive takes the label.
    pub fn remove_schedule(&self, volume: &str, name: &str) -> Result<()> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(volume)?;
        self.find_schedule(&self.config(), volume.id, name)?;
        self.update_soon(|config| {
            config.unschedule(volume.id, Some(name));
            Ok(())
        })
    }

    /// Takes the due snapshot of a schedule, identified by any of its volumes, of all its
    /// volumes atomically. The label records in one step that it was taken and how many were missed.
    ///
    /// # Errors
    /// As [`Pool::snapshot`]; there is no snapshot then, and the schedule is as it was.
    pub fn take_scheduled(
        self: &Arc<Self>,
        volume: &str,
        name: &str,
        turn: &ScheduleTurn,
    ) -> Result<Vec<SnapshotStatus>> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(volume)?;
        let config = self.config();
        let schedule = self.find_schedule(&config, volume.id, name)?;
        let volumes = self.schedule_status(&config, schedule).volumes;
        let new = NewSnapshot {
            name: turn.snapshot.clone(),
            schedule: name.to_owned(),
            created_s: turn.now_s,
        };
        let (turn, name) = (turn.clone(), name.to_owned());
        self.take(&volumes, new, move |config| {
            let mine = |known: &&mut ScheduleConfig| {
                known.name == name && known.volumes.contains(&volume.id)
            };
            if let Some(known) = config.schedules.iter_mut().find(mine) {
                known.last_s = turn.now_s;
                if turn.missed > 0 && known.missed == 0 {
                    known.missed_since_s = turn.missed_since_s;
                }
                known.missed = known.missed.saturating_add(turn.missed);
            }
        })
    }
}

fn check(spec: &ScheduleSpec) -> Result<()> {
    plan::check_name("schedule", &spec.name)?;
    let refuse = |told: String| error(ErrorCode::Invalid, told);
    if spec.name.len() > NAME_MAX {
        return refuse(format!(
            "'{}' is too long for a schedule's name: use at most {NAME_MAX} characters, since the \
             names of its snapshots are longer",
            spec.name
        ));
    }
    if spec.volumes.is_empty() || spec.volumes.len() > GROUP_MAX {
        return refuse(format!(
            "a schedule covers 1 to {GROUP_MAX} volumes, not {}: create several",
            spec.volumes.len()
        ));
    }
    if !EVERY_S.contains(&spec.every_s) {
        return refuse(format!(
            "an interval of {} s is out of range: choose 1m to 366d",
            spec.every_s
        ));
    }
    if !KEEP.contains(&spec.keep) {
        return refuse(format!(
            "{} snapshots cannot be kept: choose {} to {}",
            spec.keep,
            KEEP.start(),
            KEEP.end()
        ));
    }
    Ok(())
}
