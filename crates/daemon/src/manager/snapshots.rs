//! Snapshots and clones.

use super::core::{Manager, Result, check_name, lock};
use super::scrubs::now_s;
use crate::mapping::ToApi;
use api::v1;

/// Ranges of a difference when the caller does not say.
const RANGES_DEFAULT: usize = 1024;

impl Manager {
    /// Takes a snapshot of volumes at one moment.
    ///
    /// # Errors
    /// As the engine's.
    pub fn snapshot_create(&self, request: v1::SnapshotCreate) -> Result<v1::SnapshotList> {
        let v1::SnapshotCreate {
            pool,
            volumes,
            name,
        } = request;
        check_name("a snapshot", &name)?;
        let taken = self
            .control
            .snapshot_create(&pool, &volumes, &name, now_s());
        let taken = taken.map_err(|error| self.pool_problem(&pool, error))?;
        Ok(v1::SnapshotList {
            items: taken.to_api(),
        })
    }

    /// The snapshots of a pool or of all, of one volume or of all.
    ///
    /// # Errors
    /// When the pool is not open, or has no such volume.
    pub fn snapshot_list(
        &self,
        pool: Option<&str>,
        volume: Option<&str>,
    ) -> Result<v1::SnapshotList> {
        let mut items = Vec::new();
        for pool in self.one_or_all(pool)? {
            let found = self.control.snapshot_list(&pool, volume);
            let found = found.map_err(|error| self.pool_problem(&pool, error))?;
            items.extend(found.to_api());
        }
        Ok(v1::SnapshotList { items })
    }

    /// Renames a snapshot, holds it or lets it go.
    ///
    /// # Errors
    /// As the engine's, and when it is exported and would get another name.
    pub fn snapshot_change(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
        request: &v1::SnapshotChange,
    ) -> Result<v1::Snapshot> {
        let _changes = lock(&self.changes);
        if let Some(name) = &request.name {
            check_name("a snapshot", name)?;
            self.check_unused(pool, Some(&format!("{volume}@{snapshot}")))?;
        }
        let name = request.name.as_deref();
        let changed = self
            .control
            .snapshot_change(pool, volume, snapshot, name, request.held);
        changed
            .map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// As the engine's, and while it is exported.
    pub fn snapshot_delete(&self, pool: &str, volume: &str, snapshot: &str) -> Result<()> {
        let _changes = lock(&self.changes);
        self.check_unused(pool, Some(&format!("{volume}@{snapshot}")))?;
        let names = [snapshot.to_owned()];
        let deleted = self.control.snapshot_delete(pool, volume, &names);
        deleted.map_err(|error| self.pool_problem(pool, error))
    }

    /// What a volume, or its snapshot `to`, has otherwise than the snapshot `from`: from `start`
    /// (bytes) on, at most `limit` ranges.
    ///
    /// # Errors
    /// As the engine's.
    pub fn snapshot_diff(
        &self,
        (pool, volume): (&str, &str),
        from: Option<&str>,
        to: Option<&str>,
        start: Option<usize>,
        limit: Option<usize>,
    ) -> Result<v1::SnapshotDiff> {
        let (start, limit) = (start.unwrap_or(0), limit.unwrap_or(RANGES_DEFAULT));
        let found = self
            .control
            .snapshot_diff(pool, volume, from, to, start as u64, limit);
        found
            .map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Makes a volume that begins as a snapshot is.
    ///
    /// # Errors
    /// As the engine's.
    pub fn snapshot_clone(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
        request: &v1::SnapshotClone,
    ) -> Result<v1::Volume> {
        check_name("a volume", &request.name)?;
        let made = self
            .control
            .snapshot_clone(pool, volume, snapshot, &request.name);
        made.map(|status| self.volume(status))
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Gives a clone the snapshots that it stands on.
    ///
    /// # Errors
    /// As the engine's, and while anything of the pool is sent or received: by the names it has now.
    pub fn volume_promote(&self, pool: &str, volume: &str) -> Result<v1::Promotion> {
        let _changes = lock(&self.changes);
        self.check_not_moving(pool, None)?;
        let done = self.control.volume_promote(pool, volume);
        done.map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Makes a volume as it was when a snapshot was taken.
    ///
    /// # Errors
    /// As the engine's, and while it is exported: hosts keep what they read.
    pub fn volume_roll_back(
        &self,
        pool: &str,
        volume: &str,
        request: &v1::VolumeRollBack,
    ) -> Result<v1::Volume> {
        let _changes = lock(&self.changes);
        self.check_unused(pool, Some(volume))?;
        let done = self
            .control
            .volume_roll_back(pool, volume, &request.snapshot);
        done.map(|status| self.volume(status))
            .map_err(|error| self.pool_problem(pool, error))
    }
}
