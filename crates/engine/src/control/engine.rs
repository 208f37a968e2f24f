//! The engine and what can be asked of it.

use super::types::*;

/// The engine: its threads and its pools. Every call may block; none is for a shard's thread.
pub struct Engine {}

type Result<T> = std::result::Result<T, EngineError>;

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread, memory or io_uring for it.
    pub fn start(_config: &EngineConfig) -> Result<Self> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// The loops of the engine's threads, for front ends to run their sessions on.
    pub fn remotes(&self) -> Vec<reactor::Remote> {
        Vec::new()
    }

    /// Exports every pool, as `pool_export` does, for a clean end.
    pub fn shutdown(&self) {}

    /// Opens a drive, looks and closes it again.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn drive_probe(&self, spec: &str) -> Result<DriveReport> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Makes a pool and opens it.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_create(&self, spec: &PoolSpec) -> Result<PoolStatus> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Every open pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_list(&self) -> Result<Vec<PoolStatus>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// One pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_status(&self, pool: &str) -> Result<PoolStatus> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// The pools on these drives that are not open.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_scan(&self, drives: &[String]) -> Result<Vec<Importable>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Opens the pool called (or with the id) `pool` from these drives; with some missing only when `degraded`.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_import(&self, drives: &[String], pool: &str, degraded: bool) -> Result<PoolStatus> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Ends the pool's volumes for their front ends, makes everything durable and closes its drives.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_export(&self, pool: &str) -> Result<()> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Forgets the pool and everything in it: its labels are cleared.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_destroy(&self, pool: &str) -> Result<()> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Holds or releases promotion into RAM and the fast tier.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_hold_promotion(&self, pool: &str, hold: bool) -> Result<()> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Writes everything back to its slow home and forgets all clean copies, so that the pool is cold. Blocks until done.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_cool(&self, pool: &str) -> Result<()> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Counters of the pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_counters(&self, pool: &str) -> Result<IoCounters> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// The exports kept in the pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_exports(&self, pool: &str) -> Result<Vec<ExportRecord>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Replaces the exports kept in the pool, durably.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_set_exports(&self, pool: &str, exports: Vec<ExportRecord>) -> Result<()> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Adds a vdrive; returns its number.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn vdrive_add(&self, pool: &str, spec: &VdriveSpec, force: bool) -> Result<u8> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Starts to evacuate a vdrive; returns the job. The vdrive leaves the pool when the job ends.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn vdrive_remove(&self, pool: &str, vdrive: u8) -> Result<u64> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Long work, running and of late, newest first.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn jobs(&self) -> Result<Vec<JobStatus>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Ends a job; what it moved stays moved.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn job_cancel(&self, job: u64) -> Result<()> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Makes a volume.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_create(&self, pool: &str, spec: &VolumeSpec) -> Result<VolumeStatus> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// The pool's volumes.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_list(&self, pool: &str) -> Result<Vec<VolumeStatus>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Grows a volume; shrinks it only with `shrink`, and what lies beyond is lost.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_resize(
        &self,
        pool: &str,
        volume: &str,
        size: u64,
        shrink: bool,
    ) -> Result<VolumeStatus> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Ends the volume for its front ends and frees its space; returns the job.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_delete(&self, pool: &str, volume: &str) -> Result<u64> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// The volume, for a front end.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_open(
        &self,
        pool: &str,
        volume: &str,
    ) -> Result<std::sync::Arc<dyn block::BlockDevice>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// Counters of the volume.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_counters(&self, pool: &str, volume: &str) -> Result<IoCounters> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }

    /// The volume's LBA space in `cells` equal parts.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_map(&self, pool: &str, volume: &str, cells: usize) -> Result<Vec<MapCell>> {
        Err(EngineError::new(ErrorCode::Invalid, "being written"))
    }
}
