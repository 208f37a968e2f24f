//! Snapshots and clones: create, list, rename, hold, delete, diff, clone, promote, roll back.

use super::Result;
use super::exports::Exports;
use super::registry::PoolRegistry;
use super::volumes::Volumes;
use crate::clock::now_s;
use crate::control::{Control, PoolCalls};
use crate::mapping::ToApi;
use crate::names::check_name;
use api::v1::{self, Problem};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Default number of ranges of a diff.
const RANGES_DEFAULT: usize = 1024;

/// Default time to spend on computing the unique space of snapshots, in seconds.
const WAIT_DEFAULT_S: usize = 1;
/// Maximum time.
const WAIT_MAX_S: usize = 20;

/// Snapshots of volumes, and operations on volumes by snapshots.
pub struct Snapshots {
    control: Arc<dyn Control>,
    registry: Arc<PoolRegistry>,
    exports: Arc<Exports>,
    volumes: Arc<Volumes>,
}

impl Snapshots {
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        exports: &Arc<Exports>,
        volumes: &Arc<Volumes>,
    ) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            registry: Arc::clone(registry),
            exports: Arc::clone(exports),
            volumes: Arc::clone(volumes),
        }
    }

    /// Takes an atomic snapshot of volumes.
    ///
    /// # Errors
    /// As the engine's.
    pub fn create(&self, request: v1::SnapshotCreate) -> Result<v1::SnapshotList> {
        let v1::SnapshotCreate {
            pool,
            volumes,
            name,
        } = request;
        check_name("a snapshot", &name)?;
        let taken = self
            .registry
            .snapshot_create(&pool, &volumes, &name, now_s())?;
        Ok(v1::SnapshotList {
            items: taken.to_api(),
        })
    }

    /// Snapshots of a pool or of all, of one volume or of all, with their unique space as far as it
    /// is computed within `wait_s` seconds.
    ///
    /// # Errors
    /// When the pool is not open, the volume does not exist, or a read failed.
    pub fn list(
        &self,
        pool: Option<&str>,
        volume: Option<&str>,
        wait_s: Option<usize>,
    ) -> Result<v1::SnapshotList> {
        let wait_s = wait_s.unwrap_or(WAIT_DEFAULT_S);
        if wait_s > WAIT_MAX_S {
            let text = format!(
                "at most {WAIT_MAX_S} s can be spent on computing the space of snapshots, not \
                 {wait_s}"
            );
            return Err(Problem::invalid(text));
        }
        let (began, wait) = (Instant::now(), Duration::from_secs(wait_s as u64));
        let mut items: Vec<v1::Snapshot> = Vec::new();
        for pool in self.registry.one_or_all(pool)? {
            let found = self.registry.snapshot_list(&pool, volume)?;
            items.extend(found.to_api());
        }
        for item in &mut items {
            if began.elapsed() >= wait {
                break;
            }
            let (pool, volume) = (&item.pool, &item.volume);
            let go_on = || began.elapsed() < wait;
            let unique = self
                .control
                .snapshot_unique(pool, volume, &item.name, &go_on);
            item.unique = match unique {
                // It was deleted concurrently.
                Err(error) if error.code == engine::ErrorCode::NotFound => None,
                unique => unique.map_err(|error| self.registry.problem(pool, error))?,
            };
        }
        Ok(v1::SnapshotList { items })
    }

    /// A snapshot, without its unique space.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn show(&self, (pool, volume, snapshot): (&str, &str, &str)) -> Result<v1::Snapshot> {
        let found = self.registry.snapshot_list(pool, Some(volume))?;
        let one = found.into_iter().find(|known| known.name == snapshot);
        one.map(ToApi::to_api).ok_or_else(|| {
            Problem::not_found(format!(
                "volume {pool}/{volume} has no snapshot {snapshot}: see `convect snapshot \
                     list {pool}/{volume}`"
            ))
        })
    }

    /// Renames, holds or releases a snapshot.
    ///
    /// # Errors
    /// As the engine's, and when an exported one is renamed.
    pub fn change(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
        request: &v1::SnapshotChange,
    ) -> Result<v1::Snapshot> {
        let _changes = self.registry.begin_change();
        if let Some(name) = &request.name {
            check_name("a snapshot", name)?;
            self.exports
                .check_unused(pool, Some(&format!("{volume}@{snapshot}")))?;
        }
        let name = request.name.as_deref();
        self.registry
            .snapshot_change(pool, volume, snapshot, name, request.held)
            .map(ToApi::to_api)
    }

    /// Deletes a snapshot, with `force` also its exports.
    ///
    /// # Errors
    /// As the engine's, and without `force` when it is exported.
    pub fn delete(&self, (pool, volume, snapshot): (&str, &str, &str), force: bool) -> Result<()> {
        let _changes = self.registry.begin_change();
        let names = [snapshot.to_owned()];
        let delete = || self.registry.snapshot_delete(pool, volume, &names);
        let exported = format!("{volume}@{snapshot}");
        self.exports.delete_with(pool, &exported, force, &delete)
    }

    /// Ranges that changed from snapshot `from` to snapshot `to` or the volume: at most `limit`
    /// ranges, beginning at byte `start`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn diff(
        &self,
        (pool, volume): (&str, &str),
        from: Option<&str>,
        to: Option<&str>,
        start: Option<usize>,
        limit: Option<usize>,
    ) -> Result<v1::SnapshotDiff> {
        let (start, limit) = (start.unwrap_or(0), limit.unwrap_or(RANGES_DEFAULT));
        self.registry
            .snapshot_diff(pool, volume, from, to, start as u64, limit)
            .map(ToApi::to_api)
    }

    /// Creates a clone of a snapshot.
    ///
    /// # Errors
    /// As the engine's.
    pub fn clone_volume(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
        request: &v1::SnapshotClone,
    ) -> Result<v1::Volume> {
        check_name("a volume", &request.name)?;
        self.registry
            .snapshot_clone(pool, volume, snapshot, &request.name)
            .map(|status| self.volumes.shown(status))
    }

    /// Promotes a clone: swaps it with its origin.
    ///
    /// # Errors
    /// As the engine's, and while a stream of the pool is in progress, which refers to the present
    /// names.
    pub fn promote(&self, pool: &str, volume: &str) -> Result<v1::Promotion> {
        let _changes = self.registry.begin_change();
        self.exports.check_not_moving(pool, None)?;
        self.registry
            .volume_promote(pool, volume)
            .map(ToApi::to_api)
    }

    /// Rolls a volume back to a snapshot. With `force` its hosts are disconnected before, since they
    /// cache its data, and may connect again afterwards.
    ///
    /// # Errors
    /// As the engine's, and without `force` while an export offers it.
    pub fn roll_back(
        &self,
        pool: &str,
        volume: &str,
        request: &v1::VolumeRollBack,
    ) -> Result<v1::Volume> {
        let _changes = self.registry.begin_change();
        self.exports
            .check_not_offered_unless(request.force, pool, volume)?;
        let stopped = self.exports.stop_offers(pool, volume);
        let done = self
            .registry
            .volume_roll_back(pool, volume, &request.snapshot);
        self.exports.restart(pool, stopped);
        done.map(|status| self.volumes.shown(status))
    }
}
