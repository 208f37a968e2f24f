//! A fake engine in memory.

mod looks;
pub mod qos;
mod status;
mod streams;
mod world;

use super::answers::{Nothing, explained};
use block::BlockDevice;
use daemon::Control;
use engine::*;
use looks::volume;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
pub use world::{StoredPool, World};

type Result<T> = std::result::Result<T, EngineError>;

fn fail<T>(code: ErrorCode, message: &str) -> Result<T> {
    Err(EngineError::new(code, message))
}

type Device = Arc<dyn BlockDevice>;

/// A fake engine over a [`World`].
#[derive(Default)]
pub struct Fake {
    pub world: Arc<World>,
    open: Mutex<BTreeSet<String>>,
}

impl Fake {
    pub fn over(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            open: Mutex::default(),
        })
    }

    fn with<T>(&self, pool: &str, work: impl FnOnce(&mut StoredPool) -> Result<T>) -> Result<T> {
        if !self.open.lock().unwrap().contains(pool) {
            return fail(ErrorCode::NotFound, "there is no pool of this name");
        }
        work(self.world.pools().get_mut(pool).unwrap())
    }
}

impl Control for Fake {
    fn remotes(&self) -> Vec<reactor::Remote> {
        Vec::new()
    }

    fn shutdown(&self) {
        self.open.lock().unwrap().clear();
    }

    fn drive_probe(&self, spec: &str) -> Result<DriveReport> {
        fail(ErrorCode::Io, &format!("{spec}: no such drive"))
    }

    fn pool_create(&self, spec: &PoolSpec) -> Result<PoolStatus> {
        if self.world.pools().contains_key(&spec.name) {
            return fail(ErrorCode::Exists, "there is a pool of this name already");
        }
        let drives: Vec<String> = spec.vdrives.iter().flat_map(|v| v.drives.clone()).collect();
        let stored = StoredPool {
            id: format!("{:032x}", spec.name.len()),
            mirrored: spec.vdrives.iter().all(|v| v.layout == LayoutSpec::Mirror),
            drives,
            ..StoredPool::default()
        };
        self.world.pools().insert(spec.name.clone(), stored);
        self.open.lock().unwrap().insert(spec.name.clone());
        Ok(self.status(&spec.name))
    }

    fn pool_list(&self) -> Result<Vec<PoolStatus>> {
        let open = self.open.lock().unwrap().clone();
        Ok(open.iter().map(|name| self.status(name)).collect())
    }

    fn look(&self) -> Vec<PoolLook> {
        self.world.looks.fetch_add(1, Ordering::Relaxed);
        drop(self.world.gate.lock());
        let look = |status: PoolStatus| PoolLook {
            counters: self.pool_counters(&status.name).unwrap(),
            snapshots: self.snapshot_list(&status.name, None).unwrap().len(),
            volumes: self.volume_looks(&status.name),
            groups: self.world.groups.lock().unwrap().clone(),
            exports: Vec::new(),
            status,
        };
        self.pool_list().unwrap().into_iter().map(look).collect()
    }

    fn pool_status(&self, pool: &str) -> Result<PoolStatus> {
        self.with(pool, |_| Ok(()))?;
        Ok(self.status(pool))
    }

    fn pool_scan(&self, drives: &[String]) -> Result<ScanReport> {
        let open = self.open.lock().unwrap().clone();
        let pools = self.world.pools();
        let found = pools.iter().filter(|(name, pool)| {
            !open.contains(*name) && pool.drives.iter().any(|drive| drives.contains(drive))
        });
        let found = found.map(|(name, pool)| Importable {
            id: pool.id.clone(),
            name: name.clone(),
            found: pool.drives.clone(),
            missing: self.world.missing(pool),
        });
        let mut report = ScanReport::default();
        report.pools.extend(found);
        Ok(report)
    }

    fn pool_import(
        &self,
        drives: &[String],
        pool: &str,
        options: ImportOptions,
    ) -> Result<PoolStatus> {
        let scanned = self.pool_scan(drives)?.pools;
        let found = scanned.iter().find(|p| p.name == pool || p.id == pool);
        let Some(found) = found else {
            return fail(ErrorCode::NotFound, "no such pool lies on these drives");
        };
        let (mirrored, generation) = {
            let pool = &self.world.pools()[&found.name];
            (pool.mirrored, pool.generation)
        };
        let without = options.missing != MissingDrives::Refuse && mirrored;
        if !found.missing.is_empty() && !without {
            let missing = found.missing.join(", ");
            return fail(ErrorCode::Refused, &format!("{missing} is missing"));
        }
        if generation < options.seen && !options.accept_old {
            return fail(ErrorCode::Refused, "the pool is older than it was");
        }
        self.open.lock().unwrap().insert(found.name.clone());
        Ok(self.status(&found.name))
    }

    fn pool_export(&self, pool: &str) -> Result<()> {
        self.with(pool, |_| Ok(()))?;
        self.open.lock().unwrap().remove(pool);
        Ok(())
    }

    fn pool_destroy(&self, pool: &str) -> Result<()> {
        self.pool_export(pool)?;
        self.world.pools().remove(pool);
        Ok(())
    }

    fn pool_hold_promotion(&self, pool: &str, _hold: bool) -> Result<()> {
        self.with(pool, |_| Ok(()))
    }

    fn pool_set_ram(&self, pool: &str, bytes: u64) -> Result<()> {
        self.with(pool, |pool| {
            pool.ram = (pool.ram.0.min(bytes), bytes);
            Ok(())
        })
    }

    fn pool_cool(&self, pool: &str) -> Result<()> {
        self.with(pool, |_| Ok(()))
    }

    fn pool_counters(&self, pool: &str) -> Result<IoCounters> {
        self.with(pool, |_| Ok(IoCounters::default()))
    }

    fn pool_scrub(&self, pool: &str, spec: &ScrubSpec) -> Result<u64> {
        self.with(pool, |pool| {
            pool.scrub.state = "running".to_owned();
            pool.scrub.began_s = spec.began_s;
            pool.scrub.rate = spec.rate;
            pool.scrub.job = Some(7);
            Ok(7)
        })
    }

    fn pool_scrub_cancel(&self, pool: &str) -> Result<()> {
        self.with(pool, |pool| match pool.scrub.job.take() {
            Some(_) => Ok(()),
            None => fail(ErrorCode::Invalid, "the pool is not being scrubbed"),
        })
    }

    fn pool_scrub_status(&self, pool: &str) -> Result<ScrubStatus> {
        self.with(pool, |pool| Ok(pool.scrub.clone()))
    }

    fn pool_scrub_since(&self, pool: &str, since_s: u64) -> Result<()> {
        self.with(pool, |pool| {
            pool.scrub.began_s = since_s;
            Ok(())
        })
    }

    fn pool_change(&self, pool: &str, change: &PoolChange) -> Result<PoolStatus> {
        self.with(pool, |pool| {
            if let Some(daily) = change.promotion_budget {
                pool.budget = Some(BudgetStatus {
                    daily,
                    today: 0,
                    left: 0,
                });
            }
            Ok(())
        })?;
        self.pool_status(pool)
    }

    fn pool_keep_wear(&self, pool: &str, now_s: u64) -> Result<()> {
        self.with(pool, |pool| {
            if pool.wear.since_s == 0 {
                pool.wear.since_s = now_s;
            }
            pool.wear_kept.push(now_s);
            Ok(())
        })
    }

    fn pool_anchor(&self, pool: &str) -> Result<Option<String>> {
        self.with(pool, |pool| Ok(pool.anchor.clone()))
    }

    fn pool_set_anchor(&self, pool: &str, anchor: &str) -> Result<()> {
        self.with(pool, |pool| pool.keep_anchor(anchor))
    }

    fn pool_warn_at(&self, pool: &str, levels: &[u8]) -> Result<PoolStatus> {
        self.with(pool, |pool| {
            pool.warn_at = levels.to_vec();
            Ok(())
        })?;
        self.pool_status(pool)
    }

    fn pool_exports(&self, pool: &str) -> Result<Vec<ExportRecord>> {
        self.with(pool, |pool| Ok(pool.exports.clone()))
    }

    fn pool_set_exports(&self, pool: &str, exports: Vec<ExportRecord>) -> Result<()> {
        if self.world.full.load(Ordering::Relaxed) {
            return fail(ErrorCode::NoSpace, "the pool is full");
        }
        self.with(pool, |pool| {
            pool.exports = exports;
            Ok(())
        })
    }

    fn volume_reservations(&self, pool: &str, _volume: &str) -> Result<Option<String>> {
        self.with(pool, |_| Ok(None))
    }

    fn volume_set_reservations(
        &self,
        pool: &str,
        _volume: &str,
        _state: Option<String>,
    ) -> Result<()> {
        self.with(pool, |_| Ok(()))
    }

    fn vdrive_add(&self, pool: &str, spec: &VdriveSpec, _force: bool) -> Result<u8> {
        self.with(pool, |pool| {
            pool.drives.extend(spec.drives.clone());
            Ok(2)
        })
    }

    fn vdrive_remove(&self, pool: &str, _vdrive: u8) -> Result<u64> {
        self.with(pool, |_| Ok(7))
    }

    fn drive_online(&self, pool: &str, _drive: &str, _force: bool) -> Result<u64> {
        self.with(pool, |_| Ok(7))
    }

    fn drive_offline(&self, pool: &str, _drive: &str) -> Result<()> {
        self.with(pool, |_| Ok(()))
    }

    fn drive_replace(&self, pool: &str, old: &str, new: &str, _force: bool) -> Result<u64> {
        self.with(pool, |pool| {
            pool.drives.retain(|drive| drive != old);
            pool.drives.push(new.to_owned());
            Ok(7)
        })
    }

    fn jobs(&self) -> Result<Vec<JobStatus>> {
        let mut job = JobStatus {
            id: 7,
            kind: "evacuate".to_owned(),
            subject: "tank".to_owned(),
            state: "running".to_owned(),
            done: 999,
            total: 1000,
            rate: 1,
            seconds_left: Some(1),
            message: String::new(),
        };
        let alter = *self.world.alter_job.lock().unwrap();
        alter.iter().for_each(|alter| alter(&mut job));
        Ok(vec![job])
    }

    fn job_cancel(&self, _job: u64) -> Result<()> {
        Ok(())
    }

    fn job_pause(&self, _job: u64) -> Result<()> {
        *self.world.alter_job.lock().unwrap() = Some(|job| {
            job.state = "paused".to_owned();
            (job.rate, job.seconds_left) = (0, None);
        });
        Ok(())
    }

    fn job_resume(&self, _job: u64) -> Result<()> {
        *self.world.alter_job.lock().unwrap() = None;
        Ok(())
    }

    fn qos_policies(&self, pool: &str) -> Result<Vec<QosPolicy>> {
        self.with(pool, |_| Ok(vec![qos::policy()]))
    }

    fn qos_policy_create(&self, _pool: &str, policy: &QosPolicy) -> Result<QosPolicy> {
        Ok(policy.clone())
    }

    fn qos_policy_change(&self, _: &str, name: &str, _: &QosPolicyChange) -> Result<QosPolicy> {
        fail(ErrorCode::Invalid, name)
    }

    fn qos_policy_delete(&self, _pool: &str, policy: &str) -> Result<()> {
        fail(ErrorCode::Busy, policy)
    }

    fn qos_groups(&self, pool: &str) -> Result<Vec<QosGroup>> {
        self.with(pool, |_| Ok(vec![qos::group(None)]))
    }

    fn qos_group_create(&self, _pool: &str, group: &GroupChoice) -> Result<QosGroup> {
        Ok(qos::group(Some(group)))
    }

    fn qos_group_change(&self, _pool: &str, group: &GroupChoice) -> Result<QosGroup> {
        fail(ErrorCode::Refused, &group.name)
    }

    fn qos_group_delete(&self, _pool: &str, group: &str) -> Result<()> {
        fail(ErrorCode::Busy, group)
    }

    fn qos_check(&self, pool: &str, planned: Option<(&str, usize)>) -> Result<QosCheck> {
        self.check_of(pool, planned)
    }

    fn volume_create_with(
        &self,
        pool: &str,
        spec: &VolumeSpec,
        _policy: &PolicyChoice,
    ) -> Result<VolumeStatus> {
        self.with(pool, |stored| {
            if stored.volumes.contains_key(&spec.name) {
                return fail(ErrorCode::Exists, "there is a volume of this name already");
            }
            if spec.size > 1 << 40 {
                return fail(ErrorCode::NoSpace, "the pool has no space for it");
            }
            stored.volumes.insert(spec.name.clone(), spec.clone());
            Ok(volume(pool, spec))
        })
    }

    fn volume_list(&self, pool: &str) -> Result<Vec<VolumeStatus>> {
        self.with(pool, |stored| {
            Ok(stored
                .volumes
                .values()
                .map(|spec| volume(pool, spec))
                .collect())
        })
    }

    fn volume_receiving(&self, pool: &str, _volume: &str) -> Result<Option<ReceiveStatus>> {
        self.with(pool, |_| Ok(None))
    }

    fn volume_resize(
        &self,
        pool: &str,
        name: &str,
        size: u64,
        _shrink: bool,
    ) -> Result<VolumeStatus> {
        self.with(pool, |stored| match stored.volumes.get_mut(name) {
            Some(spec) => {
                spec.size = size;
                Ok(volume(pool, spec))
            }
            None => fail(ErrorCode::NotFound, "there is no such volume"),
        })
    }

    fn volume_change(&self, pool: &str, name: &str, change: &VolumeChange) -> Result<VolumeStatus> {
        self.with(pool, |stored| match stored.volumes.get_mut(name) {
            Some(spec) => {
                spec.quota = change.quota.unwrap_or(spec.quota);
                spec.reservation = change.reservation.unwrap_or(spec.reservation);
                Ok(volume(pool, spec))
            }
            None => fail(ErrorCode::NotFound, "there is no such volume"),
        })
    }

    fn volume_delete(&self, pool: &str, name: &str) -> Result<u64> {
        self.with(pool, |stored| match stored.volumes.remove(name) {
            Some(_) => Ok(8),
            None => fail(ErrorCode::NotFound, "there is no such volume"),
        })
    }

    fn volume_open(&self, pool: &str, name: &str, by: Option<&str>) -> Result<Device> {
        if by == Some("") {
            return fail(ErrorCode::Invalid, "that is no name");
        }
        let mut opened = self.world.opened_by.lock().unwrap();
        opened.push(by.map(str::to_owned));
        let volume = name.split('@').next().unwrap();
        self.with(pool, |stored| match stored.volumes.contains_key(volume) {
            true => Ok(Arc::new(Nothing(self.world.unflushed.clone())) as Device),
            false => fail(ErrorCode::NotFound, "there is no such volume"),
        })
    }

    fn volume_open_export(
        &self,
        pool: &str,
        name: &str,
        _export: &str,
        by: Option<&str>,
    ) -> Result<Device> {
        self.volume_open(pool, name, by)
    }

    fn volume_counters(&self, pool: &str, _volume: &str) -> Result<IoCounters> {
        self.pool_counters(pool)
    }

    fn volume_promote(&self, pool: &str, name: &str) -> Result<Promotion> {
        self.with(pool, |stored| match stored.volumes.get(name) {
            Some(_) => Ok(Promotion {
                parent: "v".to_owned(),
                snapshots: vec!["s".to_owned()],
            }),
            None => fail(ErrorCode::NotFound, "there is no such volume"),
        })
    }

    fn volume_roll_back(&self, pool: &str, name: &str, snapshot: &str) -> Result<VolumeStatus> {
        self.snapshot_of(pool, name, snapshot)?;
        self.with(pool, |stored| Ok(volume(pool, &stored.volumes[name])))
    }

    fn snapshot_create(
        &self,
        pool: &str,
        volumes: &[String],
        name: &str,
        now_s: u64,
    ) -> Result<Vec<SnapshotStatus>> {
        self.with(pool, |stored| {
            let before = stored.snapshots.len();
            let taken: Vec<_> = volumes
                .iter()
                .map(|volume| SnapshotStatus {
                    name: name.to_owned(),
                    volume: volume.clone(),
                    pool: pool.to_owned(),
                    size: 1 << 20,
                    stored: 0,
                    created_s: now_s,
                    held: false,
                    clones: Vec::new(),
                    schedule: String::new(),
                    identity: format!("{:032x}-{before}-{now_s}", 7),
                })
                .collect();
            stored.snapshots.extend(taken.clone());
            Ok(taken)
        })
    }

    fn snapshot_list(&self, pool: &str, volume: Option<&str>) -> Result<Vec<SnapshotStatus>> {
        self.with(pool, |stored| {
            let mut found = stored.snapshots.clone();
            found.retain(|known| volume.is_none_or(|volume| known.volume == volume));
            Ok(found)
        })
    }

    fn snapshot_unique(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<u64>> {
        let known = self.snapshot_of(pool, volume, name)?;
        Ok(go_on().then_some(known.stored))
    }

    fn snapshot_change(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
        new_name: Option<&str>,
        held: Option<bool>,
    ) -> Result<SnapshotStatus> {
        let mut known = self.snapshot_of(pool, volume, name)?;
        known.held = held.unwrap_or(known.held);
        known.name = new_name.unwrap_or(name).to_owned();
        self.with(pool, |stored| {
            let one = |one: &&mut SnapshotStatus| one.volume == volume && one.name == name;
            if let Some(stored) = stored.snapshots.iter_mut().find(one) {
                *stored = known.clone();
            }
            Ok(known)
        })
    }

    fn snapshot_delete(&self, pool: &str, volume: &str, names: &[String]) -> Result<()> {
        self.snapshot_of(pool, volume, &names[0])?;
        self.with(pool, |stored| {
            let gone =
                |known: &SnapshotStatus| known.volume == volume && names.contains(&known.name);
            stored.snapshots.retain(|known| !gone(known));
            Ok(())
        })
    }

    fn snapshot_clone(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
        clone: &str,
    ) -> Result<VolumeStatus> {
        let known = self.snapshot_of(pool, volume, name)?;
        let spec = VolumeSpec {
            name: clone.to_owned(),
            size: known.size,
            lba_size: 512,
            thick: false,
            quota: 0,
            reservation: 0,
        };
        self.volume_create_with(pool, &spec, &PolicyChoice::default())
    }

    fn snapshot_diff(
        &self,
        pool: &str,
        volume: &str,
        from: Option<&str>,
        to: Option<&str>,
        start: u64,
        _limit: usize,
    ) -> Result<SnapshotDiff> {
        for name in from.into_iter().chain(to) {
            let name = name.split('@').next_back().unwrap();
            self.snapshot_of(pool, volume, name)?;
        }
        self.diff_from(start)
    }

    fn receive_begin(
        &self,
        pool: &str,
        volume: &str,
        spec: &ReceiveSpec,
        _force: bool,
    ) -> Result<u64> {
        self.begin_to_receive(pool, volume, spec)
    }

    fn receive_mark(&self, pool: &str, _volume: &str, done: u64) -> Result<()> {
        assert!(
            !self.world.unflushed.load(Ordering::Relaxed),
            "{done} bytes are not durable yet"
        );
        self.with(pool, |stored| {
            stored.received = done;
            Ok(())
        })
    }

    fn receive_end(&self, pool: &str, volume: &str) -> Result<Vec<SnapshotStatus>> {
        let name = self.with(pool, |stored| Ok(stored.receiving.clone()))?;
        self.snapshot_create(pool, &[volume.to_owned()], &name, 9)
    }

    fn schedule_set(&self, pool: &str, spec: &ScheduleSpec, now_s: u64) -> Result<ScheduleStatus> {
        let set = ScheduleStatus {
            name: spec.name.clone(),
            pool: pool.to_owned(),
            volumes: spec.volumes.clone(),
            every_s: spec.every_s,
            keep: spec.keep,
            since_s: now_s,
            last_s: None,
            missed: 0,
            missed_since_s: None,
        };
        self.with(pool, |stored| {
            stored.schedules.retain(|known| known.name != spec.name);
            stored.schedules.push(set.clone());
            Ok(set)
        })
    }

    fn schedule_list(&self, pool: &str, _volume: Option<&str>) -> Result<Vec<ScheduleStatus>> {
        self.with(pool, |stored| Ok(stored.schedules.clone()))
    }

    fn schedule_remove(&self, pool: &str, _volume: &str, schedule: &str) -> Result<()> {
        self.with(pool, |stored| {
            stored.schedules.retain(|known| known.name != schedule);
            Ok(())
        })
    }

    fn schedule_take(
        &self,
        pool: &str,
        volume: &str,
        schedule: &str,
        turn: &ScheduleTurn,
    ) -> Result<Vec<SnapshotStatus>> {
        if self.world.full.load(Ordering::Relaxed) {
            return fail(ErrorCode::NoSpace, "the label is full");
        }
        let find = |known: &&mut ScheduleStatus| {
            known.name == schedule && known.volumes.iter().any(|known| known == volume)
        };
        let volumes = self.with(pool, |stored| {
            let Some(known) = stored.schedules.iter_mut().find(find) else {
                return fail(ErrorCode::NotFound, "there is no such schedule");
            };
            known.last_s = Some(turn.now_s);
            known.missed += turn.missed;
            if turn.missed > 0 {
                known.missed_since_s.get_or_insert(turn.missed_since_s);
            }
            Ok(known.volumes.clone())
        })?;
        let mut taken = self.snapshot_create(pool, &volumes, &turn.snapshot, turn.now_s)?;
        self.with(pool, |stored| {
            let last = stored.snapshots.len() - taken.len();
            for known in stored.snapshots[last..].iter_mut().chain(&mut taken) {
                known.schedule = schedule.to_owned();
            }
            Ok(taken)
        })
    }

    fn volume_map(
        &self,
        pool: &str,
        _volume: &str,
        _bytes: Range<u64>,
        cells: usize,
    ) -> Result<Vec<MapCell>> {
        self.with(pool, |stored| {
            stored.looks += 1;
            let cell = MapCell {
                fast: stored.fast,
                ..MapCell::default()
            };
            Ok(vec![cell; cells])
        })
    }

    fn volume_explain(&self, pool: &str, volume: &str, lba: u64) -> Result<Explanation> {
        self.with(pool, |stored| {
            let Some(known) = stored.volumes.get(volume) else {
                return fail(ErrorCode::NotFound, "there is no such volume");
            };
            Ok(explained(lba * u64::from(known.lba_size)))
        })
    }

    fn pool_moves(&self, pool: &str) -> Result<Vec<MoveCount>> {
        let count = |cause: &Cause| MoveCount {
            cause: *cause,
            moves: *cause as u64,
            bytes: 4096,
        };
        self.with(pool, |_| Ok(Cause::ALL.iter().map(count).collect()))
    }

    fn pool_what_if(&self, pool: &str) -> Result<WhatIf> {
        let point = |hits| engine::ForecastPoint {
            percent: 200,
            bytes: 2 << 30,
            lru_hits: 0.5,
            hits,
            mean_ns: Some(400_000),
        };
        let forecast = |volume: Option<&str>, hits| engine::Forecast {
            volume: volume.map(str::to_owned),
            uses: 7,
            used_bytes: 3 << 30,
            points: vec![point(hits)],
        };
        self.with(pool, |_| {
            Ok(WhatIf {
                fast_ns: Some(100_000),
                slow_ns: None,
                pool: forecast(None, Some(0.75)),
                volumes: vec![forecast(Some("vm1"), None)],
            })
        })
    }
}

impl Fake {
    fn snapshot_of(&self, pool: &str, volume: &str, name: &str) -> Result<SnapshotStatus> {
        let mut found = self.snapshot_list(pool, Some(volume))?.into_iter();
        match found.find(|known| known.name == name) {
            Some(found) => Ok(found),
            None => fail(ErrorCode::NotFound, "there is no such snapshot"),
        }
    }
}
