//! Snapshots and clones.

use super::core::{Manager, Result, check_name, lock};
use crate::clock::now_s;
use crate::mapping::ToApi;
use api::v1::{self, Problem, ProblemCode};
use std::time::{Duration, Instant};

/// Ranges of a difference when the caller does not say.
const RANGES_DEFAULT: usize = 1024;

/// Seconds that are spent on looking for what each snapshot alone has, when the caller does not say.
const WAIT_DEFAULT_S: usize = 1;
/// The most that a caller may ask for.
const WAIT_MAX_S: usize = 20;

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

    /// The snapshots of a pool or of all, of one volume or of all, with what each alone has, as far as
    /// that is found within `wait_s` seconds.
    ///
    /// # Errors
    /// When the pool is not open, or has no such volume; what a drive said.
    pub fn snapshot_list(
        &self,
        pool: Option<&str>,
        volume: Option<&str>,
        wait_s: Option<usize>,
    ) -> Result<v1::SnapshotList> {
        let wait_s = wait_s.unwrap_or(WAIT_DEFAULT_S);
        if wait_s > WAIT_MAX_S {
            let text = format!(
                "the space of snapshots is looked for during at most {WAIT_MAX_S} s, not {wait_s}"
            );
            return Err(Problem::new(ProblemCode::Invalid, text));
        }
        let (began, wait) = (Instant::now(), Duration::from_secs(wait_s as u64));
        let mut items: Vec<v1::Snapshot> = Vec::new();
        for pool in self.one_or_all(pool)? {
            let found = self.control.snapshot_list(&pool, volume);
            let found = found.map_err(|error| self.pool_problem(&pool, error))?;
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
                // It was deleted meanwhile.
                Err(error) if error.code == engine::ErrorCode::NotFound => None,
                unique => unique.map_err(|error| self.pool_problem(pool, error))?,
            };
        }
        Ok(v1::SnapshotList { items })
    }

    /// One snapshot, without what it alone has.
    ///
    /// # Errors
    /// When there is none.
    pub fn snapshot_show(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
    ) -> Result<v1::Snapshot> {
        let found = self.control.snapshot_list(pool, Some(volume));
        let found = found.map_err(|error| self.pool_problem(pool, error))?;
        let one = found.into_iter().find(|known| known.name == snapshot);
        one.map(ToApi::to_api).ok_or_else(|| {
            Problem::new(
                ProblemCode::NotFound,
                format!(
                    "volume {pool}/{volume} has no snapshot {snapshot}: `convect snapshot list {pool}/{volume}` shows \
                     those that it has"
                ),
            )
        })
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
