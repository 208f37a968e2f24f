//! Quotas and reservations that change in a run, under load.

use crate::oracle::Wrong;
use crate::run::{POOL, Run, Step};
use engine::{ErrorCode, VolumeChange, VolumeStatus};
use std::collections::BTreeSet;
use units::BLOCK;

impl Run {
    /// A volume may take less or more from now on, and is promised some or all of what is free.
    pub fn limit(&mut self) -> Step {
        let (name, _) = self.random.pick(&self.volumes).clone();
        let status = self.engine().pool_status(POOL);
        let Some(status) = self.granted("no status", status)? else {
            return Ok(());
        };
        if status.overpromised > 0 && !self.over {
            return Err(Wrong("more is promised than there is".into()));
        }
        self.is_within_quotas()?;
        let block = BLOCK as u64;
        let free = status
            .capacity
            .saturating_sub(status.used + status.reserved);
        let reservation = match self.random.below(4) {
            0 => 0,
            1 => self.random.within(1..=100) * block,
            2 => free.saturating_sub(self.random.within(0..=300) * block),
            _ => free,
        };
        let quota = match self.random.one_in(2) {
            true => 0,
            false => reservation + self.random.within(1..=300) * block,
        };
        let (quota, reservation) = match self.plan.rich && self.races.one_in(2) {
            // It holds nearly as much already.
            true => (self.held(&name)? + self.races.within(1..=24) * block, 0),
            false => (quota, reservation),
        };
        let change = VolumeChange {
            quota: Some(quota),
            reservation: Some(reservation),
            ..VolumeChange::default()
        };
        let changed = self.engine().volume_change(POOL, &name, &change);
        match changed {
            // It holds more already, or others were faster.
            Err(failed) if matches!(failed.code, ErrorCode::Refused | ErrorCode::NoSpace) => Ok(()),
            changed => self
                .granted("a volume's limits cannot change", changed)
                .map(drop),
        }
    }

    /// Bytes that a volume holds with its snapshots.
    pub fn held(&self, name: &str) -> Result<u64, Wrong> {
        let volumes = self.engine().volume_list(POOL);
        let volumes = self.granted("no volumes", volumes)?.unwrap_or_default();
        let found = volumes.iter().find(|volume| volume.name == name);
        Ok(found.map_or(0, |volume| volume.held))
    }

    /// No volume holds more than its quota, unless it did when this life began: a crash may undo discards.
    pub fn is_within_quotas(&self) -> Step {
        let over = self.beyond_quotas()?;
        match over.difference(&self.beyond).next() {
            Some(volume) => Err(Wrong(format!("volume {volume} holds more than its quota"))),
            None => Ok(()),
        }
    }

    /// Volumes that hold more than their quotas.
    pub fn beyond_quotas(&self) -> Result<BTreeSet<u32>, Wrong> {
        if !self.plan.limits || !self.plan.rich {
            return Ok(BTreeSet::new());
        }
        let volumes = self.engine().volume_list(POOL);
        let volumes = self.granted("no volumes", volumes)?.unwrap_or_default();
        let beyond = |volume: &&VolumeStatus| volume.quota > 0 && volume.held > volume.quota;
        Ok(volumes
            .iter()
            .filter(beyond)
            .map(|volume| volume.id)
            .collect())
    }

    /// Whether more is promised than there is. A crash may take back a discard that was not flushed,
    /// and the room that it made may have been promised: that is so from the beginning of a life.
    pub fn is_overpromised(&self) -> Result<bool, Wrong> {
        if !self.plan.limits {
            return Ok(false);
        }
        let status = self.engine().pool_status(POOL);
        Ok(self
            .granted("no status", status)?
            .is_some_and(|status| status.overpromised > 0))
    }
}
