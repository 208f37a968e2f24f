//! Snapshot schedules: take due snapshots, and delete expired ones.

use super::Result;
use super::exports::Exports;
use super::registry::PoolRegistry;
use crate::clock::now_s;
use crate::control::{Control, PoolCalls};
use crate::names::check_name;
use crate::snapshot_schedule::{Clocks, Due, Past, SnapshotRule, TakenSnapshot, snapshot_name};
use crate::sync::lock;
use api::v1;
use engine::{EngineError, ScheduleSpec, ScheduleStatus, ScheduleTurn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use units::Utc;

/// Pool, first volume and name of a schedule.
pub(super) type Key = (String, String, String);

/// The last attempt of a schedule.
struct Tried {
    at: Clocks,
    /// Why no snapshot was taken, or why expired ones were not deleted.
    error: Option<String>,
}

fn key(schedule: &ScheduleStatus) -> Key {
    let first = schedule.volumes.first().cloned().unwrap_or_default();
    (schedule.pool.clone(), first, schedule.name.clone())
}

fn rule(schedule: &ScheduleStatus) -> SnapshotRule {
    SnapshotRule {
        every_s: schedule.every_s,
        keep: schedule.keep as usize,
    }
}

/// The snapshot schedules of open pools.
pub struct Schedules {
    control: Arc<dyn Control>,
    registry: Arc<PoolRegistry>,
    exports: Arc<Exports>,
    began: Instant,
    /// The last attempts. Locked briefly.
    tried: Mutex<BTreeMap<Key, Tried>>,
}

impl Schedules {
    /// Schedules without attempts; `began`: the daemon's start.
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        exports: &Arc<Exports>,
        began: Instant,
    ) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            registry: Arc::clone(registry),
            exports: Arc::clone(exports),
            began,
            tried: Mutex::default(),
        }
    }

    /// Creates or changes a schedule.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set(&self, request: v1::ScheduleSet) -> Result<v1::Schedule> {
        let v1::ScheduleSet {
            pool,
            volumes,
            name,
            every_s,
            keep,
        } = request;
        check_name("a schedule", &name)?;
        let spec = ScheduleSpec {
            name,
            volumes,
            every_s,
            keep,
        };
        let clocks = self.clocks();
        let set = self.registry.schedule_set(&pool, &spec, clocks.now_s)?;
        // The change may resolve the last error.
        lock(&self.tried).remove(&key(&set));
        Ok(self.shown(set, clocks))
    }

    /// Schedules of a pool or of all, of one volume or of all.
    ///
    /// # Errors
    /// When the pool is not open, or the volume does not exist.
    pub fn list(&self, pool: Option<&str>, volume: Option<&str>) -> Result<v1::ScheduleList> {
        self.list_at(pool, volume, self.clocks())
    }

    /// The same at a given time.
    ///
    /// # Errors
    /// When the pool is not open, or the volume does not exist.
    pub fn list_at(
        &self,
        pool: Option<&str>,
        volume: Option<&str>,
        clocks: Clocks,
    ) -> Result<v1::ScheduleList> {
        let mut items = Vec::new();
        for pool in self.registry.one_or_all(pool)? {
            let found = self.registry.schedule_list(&pool, volume)?;
            items.extend(found.into_iter().map(|known| self.shown(known, clocks)));
        }
        Ok(v1::ScheduleList { items })
    }

    /// Removes a volume from a schedule.
    ///
    /// # Errors
    /// As the engine's.
    pub fn remove(&self, pool: &str, volume: &str, schedule: &str) -> Result<()> {
        self.registry.schedule_remove(pool, volume, schedule)
    }

    /// Schedules whose last attempt failed, and why.
    pub(super) fn failed(&self) -> Vec<(Key, String)> {
        let tried = lock(&self.tried);
        let failed = tried
            .iter()
            .filter_map(|(key, tried)| Some((key.clone(), tried.error.clone()?)));
        failed.collect()
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            now_s: now_s(),
            up_s: self.began.elapsed().as_secs(),
        }
    }

    fn past(&self, schedule: &ScheduleStatus) -> Past {
        let tried = lock(&self.tried).get(&key(schedule)).map(|tried| tried.at);
        Past {
            last_s: schedule.last_s.unwrap_or(schedule.since_s),
            tried,
        }
    }

    fn shown(&self, status: ScheduleStatus, clocks: Clocks) -> v1::Schedule {
        let next_s = match rule(&status).due(&self.past(&status), clocks) {
            Due::At(next_s) => next_s,
            Due::Now { .. } => clocks.now_s,
        };
        let tried = lock(&self.tried);
        let tried = tried.get(&key(&status));
        let error = tried.and_then(|tried| tried.error.clone());
        v1::Schedule {
            error_s: tried
                .filter(|_| error.is_some())
                .map(|tried| tried.at.now_s),
            error,
            next_s,
            name: status.name,
            pool: status.pool,
            volumes: status.volumes,
            every_s: status.every_s,
            keep: status.keep,
            since_s: status.since_s,
            last_s: status.last_s,
            missed: status.missed,
            missed_since_s: status.missed_since_s,
        }
    }

    /// Takes the snapshots that are due, at most one per schedule, and deletes expired ones. A
    /// failure is recorded and retried when the next snapshot is due.
    pub fn take_what_is_due(&self, now: Clocks) {
        let pools = match self.control.pool_list() {
            Ok(pools) => pools,
            Err(error) => {
                tracing::error!("cannot check for due snapshots: {error}");
                return;
            }
        };
        let mut seen = BTreeSet::new();
        for pool in pools {
            // A pool that was closed concurrently has none.
            let schedules = self.control.schedule_list(&pool.name, None);
            for schedule in schedules.unwrap_or_default() {
                self.take_if_due(&schedule, now);
                seen.insert(key(&schedule));
            }
        }
        lock(&self.tried).retain(|known, _| seen.contains(known));
    }

    /// Takes the snapshots that are due now.
    pub fn take_what_is_due_now(&self) {
        self.take_what_is_due(self.clocks());
    }

    fn take_if_due(&self, schedule: &ScheduleStatus, now: Clocks) {
        let Due::Now {
            missed,
            missed_since_s,
        } = rule(schedule).due(&self.past(schedule), now)
        else {
            return;
        };
        let (pool, name) = (&schedule.pool, &schedule.name);
        let volumes = schedule.volumes.join(", ");
        if missed > 0 {
            tracing::warn!(
                "schedule {name} of pool {pool} ({volumes}): {missed} snapshots were missed, the \
                 first was due at {}",
                Utc::from_unix(missed_since_s)
            );
        }
        let turn = ScheduleTurn {
            snapshot: snapshot_name(name, now.now_s),
            now_s: now.now_s,
            missed,
            missed_since_s,
        };
        let (pool_of, first, _) = key(schedule);
        let taken = self.control.schedule_take(&pool_of, &first, name, &turn);
        if taken.is_ok() {
            tracing::info!("pool {pool}: took snapshot {} of {volumes}", turn.snapshot);
        }
        let expired = self.delete_expired(schedule);
        let error = taken.map(drop).and(expired).err();
        if let Some(error) = &error {
            tracing::warn!("schedule {name} of pool {pool} ({volumes}): {error}");
        }
        let tried = Tried {
            at: now,
            error: error.map(|error| error.to_string()),
        };
        lock(&self.tried).insert(key(schedule), tried);
    }

    /// Deletes the expired snapshots of a schedule.
    fn delete_expired(&self, schedule: &ScheduleStatus) -> std::result::Result<(), EngineError> {
        let _changes = self.registry.begin_change();
        let pool = &schedule.pool;
        let snapshots = self.control.snapshot_list(pool, None)?;
        for volume in &schedule.volumes {
            let own = snapshots
                .iter()
                .filter(|known| known.volume == *volume && known.schedule == schedule.name);
            let taken: Vec<TakenSnapshot> = own
                .map(|known| {
                    let export = format!("{volume}@{}", known.name);
                    TakenSnapshot {
                        name: known.name.clone(),
                        in_use: known.held
                            || !known.clones.is_empty()
                            || self.exports.check_unused(pool, Some(&export)).is_err(),
                    }
                })
                .collect();
            let expired = rule(schedule).expired(&taken);
            if !expired.is_empty() {
                self.control.snapshot_delete(pool, volume, &expired)?;
                tracing::debug!("pool {pool}: deleted {} of {volume}", expired.join(", "));
            }
        }
        Ok(())
    }
}
