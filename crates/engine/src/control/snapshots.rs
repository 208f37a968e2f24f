//! The engine's methods for snapshots and clones.

use super::engine::{Engine, Result};
use super::types::{
    Promotion, ReceiveSpec, ScheduleSpec, ScheduleStatus, ScheduleTurn, SnapshotDiff,
    SnapshotStatus, VolumeStatus,
};
use std::sync::Arc;

impl Engine {
    /// Takes an atomic snapshot of volumes of a pool. `now_s`: seconds since 1970.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_create(
        &self,
        pool: &str,
        volumes: &[String],
        name: &str,
        now_s: u64,
    ) -> Result<Vec<SnapshotStatus>> {
        self.pool(pool)?.snapshot(volumes, name, now_s)
    }

    /// The pool's snapshots, or those of one volume, oldest first.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_list(&self, pool: &str, volume: Option<&str>) -> Result<Vec<SnapshotStatus>> {
        self.pool(pool)?.snapshots(volume)
    }

    /// Bytes that a snapshot alone has, which deleting it would free: found by examining its pages
    /// and those of what is based on it, as long as `go_on` returns true; `None` if it ended the search.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_unique(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<u64>> {
        self.pool(pool)?.unique(volume, name, go_on)
    }

    /// Changes a snapshot's name, or whether it may be deleted.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_change(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
        new_name: Option<&str>,
        held: Option<bool>,
    ) -> Result<SnapshotStatus> {
        let pool = self.pool(pool)?;
        pool.change_snapshot(volume, name, new_name, held)
    }

    /// Deletes snapshots of a volume; their space becomes free in the background.
    ///
    /// # Errors
    /// With a sentence that says what to do; all are still there then.
    pub fn snapshot_delete(&self, pool: &str, volume: &str, names: &[String]) -> Result<()> {
        self.pool(pool)?.delete_snapshots(volume, names)
    }

    /// Sets a schedule of snapshots of volumes; the volumes leave the schedules of this name
    /// that they were in. `now_s`: seconds since 1970.
    ///
    /// # Errors
    /// With a sentence that says what to do; nothing is changed then.
    pub fn schedule_set(
        &self,
        pool: &str,
        spec: &ScheduleSpec,
        now_s: u64,
    ) -> Result<ScheduleStatus> {
        self.pool(pool)?.set_schedule(spec, now_s)
    }

    /// The pool's schedules, or those of one volume.
    ///
    /// # Errors
    /// When there is no such pool or volume.
    pub fn schedule_list(&self, pool: &str, volume: Option<&str>) -> Result<Vec<ScheduleStatus>> {
        self.pool(pool)?.schedules(volume)
    }

    /// Removes a volume from a schedule; its snapshots are kept.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn schedule_remove(&self, pool: &str, volume: &str, schedule: &str) -> Result<()> {
        self.pool(pool)?.remove_schedule(volume, schedule)
    }

    /// Takes the due snapshot of a schedule, identified by any of its volumes.
    ///
    /// # Errors
    /// With a sentence that says what to do; there is no snapshot then.
    pub fn schedule_take(
        &self,
        pool: &str,
        volume: &str,
        schedule: &str,
        turn: &ScheduleTurn,
    ) -> Result<Vec<SnapshotStatus>> {
        self.pool(pool)?.take_scheduled(volume, schedule, turn)
    }

    /// Creates a clone of a snapshot.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_clone(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
        clone: &str,
    ) -> Result<VolumeStatus> {
        self.pool(pool)?.clone_snapshot(volume, name, clone)
    }

    /// Promotes a clone: swaps it with its origin.
    ///
    /// # Errors
    /// With a sentence that says what to do; nothing is changed then.
    pub fn volume_promote(&self, pool: &str, volume: &str) -> Result<Promotion> {
        self.pool(pool)?.promote(volume)
    }

    /// Rolls a volume back to a snapshot.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_roll_back(&self, pool: &str, volume: &str, name: &str) -> Result<VolumeStatus> {
        self.pool(pool)?.roll_back(volume, name)
    }

    /// The differences between a volume, or its snapshot `to`, and the snapshot `from` that it
    /// is based on (`VOLUME@NAME` when that is another volume's), or everything that is stored: from
    /// `start` (bytes) on, at most `limit` ranges.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_diff(
        &self,
        pool: &str,
        volume: &str,
        from: Option<&str>,
        to: Option<&str>,
        start: u64,
        limit: usize,
    ) -> Result<SnapshotDiff> {
        self.pool(pool)?.diff(volume, from, to, start, limit)
    }

    /// Begins to receive a snapshot of another pool into a volume, or resumes that. No other client
    /// may write to the volume from here on. Returns the offset from which data is missing, in bytes.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn receive_begin(
        &self,
        pool: &str,
        volume: &str,
        spec: &ReceiveSpec,
        force: bool,
    ) -> Result<u64> {
        self.pool(pool)?.begin_receive(volume, spec, force)
    }

    /// Records that the first `done` bytes of a volume that is being received are written and flushed.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn receive_mark(&self, pool: &str, volume: &str, done: u64) -> Result<()> {
        self.pool(pool)?.mark_received(volume, done)
    }

    /// Takes the snapshot that a volume has received.
    ///
    /// # Errors
    /// With a sentence that says what to do; there is no snapshot then.
    pub fn receive_end(&self, pool: &str, volume: &str) -> Result<Vec<SnapshotStatus>> {
        self.pool(pool)?.end_receive(volume)
    }

    /// Opens a snapshot for a front end, read-only.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn snapshot_open(
        &self,
        pool: &str,
        volume: &str,
        name: &str,
    ) -> Result<Arc<dyn block::BlockDevice>> {
        Ok(self.pool(pool)?.open_snapshot(volume, name)?)
    }
}
