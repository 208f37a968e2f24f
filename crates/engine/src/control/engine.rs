//! The engine and its control interface.

use super::explain::{Explanation, MoveCount};
use super::import::{ImportOptions, MissingDrives};
use super::jobs::Jobs;
use super::look::PoolLook;
use super::types::*;
use super::wear::PoolChange;
use super::what_if::WhatIf;
use crate::pool::{Host, Pool, Scanned, because_of, error, importable, lock, report, scan};
use crate::shard::Audit;
use reactor::{ReactorThread, Remote};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use units::PoolId;

/// The engine: its threads and its pools. Every call may block, and must not be made on a shard's thread.
pub struct Engine {
    config: EngineConfig,
    pools: Mutex<BTreeMap<String, Arc<Pool>>>,
    jobs: Arc<Jobs>,
    /// One pool is created, opened or closed at a time.
    opening: Mutex<()>,
    remotes: Vec<Remote>,
    /// Ended last: everything else runs on them.
    _threads: Vec<ReactorThread>,
}

pub(super) type Result<T> = std::result::Result<T, EngineError>;

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system lacks threads, memory or io_uring.
    pub fn start(config: &EngineConfig) -> Result<Self> {
        let count = match config.threads {
            0 => config.cores.count().min(16),
            threads => threads,
        };
        let cores = config.cores.of_loops(count);
        let cores =
            cores.map_err(|failed| EngineError::new(ErrorCode::Invalid, failed.to_string()))?;
        let mut threads = Vec::new();
        for (number, cores) in cores.into_iter().enumerate() {
            let seed = seed(number)?;
            let name = format!("convect-{number}");
            let thread = ReactorThread::start_on(&name, seed, cores).map_err(|failed| {
                let advice = match failed.kind() {
                    // It says itself which core cannot be.
                    std::io::ErrorKind::InvalidInput => "",
                    _ => "; io_uring must be permitted (kernel.io_uring_disabled = 0), and the thread limit not reached",
                };
                EngineError::new(
                    ErrorCode::Io,
                    format!("engine thread {number} cannot start: {failed}{advice}"),
                )
            })?;
            threads.push(thread);
        }
        let remotes = threads.iter().map(|thread| thread.remote().clone());
        let remotes = remotes.collect();
        Ok(Self {
            _threads: threads,
            ..Self::on_loops(config, remotes)
        })
    }

    /// An engine on loops that the caller runs; there has to be at least one.
    pub fn on_loops(config: &EngineConfig, remotes: Vec<Remote>) -> Self {
        Self {
            config: config.clone(),
            pools: Mutex::default(),
            jobs: Arc::default(),
            opening: Mutex::new(()),
            remotes,
            _threads: Vec::new(),
        }
    }

    fn host(&self) -> Host<'_> {
        Host {
            remotes: &self.remotes,
            config: &self.config,
            jobs: &self.jobs,
        }
    }

    pub(super) fn pool(&self, name: &str) -> Result<Arc<Pool>> {
        match lock(&self.pools).get(name) {
            Some(pool) => Ok(pool.clone()),
            None => error(
                ErrorCode::NotFound,
                format!("no pool '{name}' is open: see `convect pool list`"),
            ),
        }
    }

    fn refuse_name(&self, name: &str) -> Result<()> {
        if lock(&self.pools).contains_key(name) {
            return error(
                ErrorCode::Exists,
                format!("a pool '{name}' is already open: choose another name or close that pool"),
            );
        }
        Ok(())
    }

    /// The open pool that uses a drive.
    fn user_of(&self, canonical: &str) -> Option<String> {
        let pools = lock(&self.pools);
        let identity = drives::identity(canonical);
        let uses = |pool: &&Arc<Pool>| {
            lock(&pool.pool_drives).iter().any(|pool_drive| {
                // A drive of the pool that has gone may have left its name to another drive.
                let same =
                    || pool_drive.drive.is_some() && drives::identity(&pool_drive.spec) == identity;
                pool_drive.spec == canonical || (identity.is_some() && same())
            })
        };
        pools.values().find(uses).map(|pool| pool.name.clone())
    }

    fn refuse_used(&self, specs: &[String]) -> Result<()> {
        for spec in specs {
            let user = drives::canonical(spec)
                .ok()
                .and_then(|canonical| self.user_of(&canonical));
            if let Some(user) = user {
                return error(
                    ErrorCode::Exists,
                    format!("{spec} is a drive of the open pool '{user}'"),
                );
            }
        }
        Ok(())
    }

    fn scan(&self, drives: &[String]) -> Result<Scanned> {
        let mut free = Vec::new();
        for spec in drives {
            let user = drives::canonical(spec)
                .ok()
                .and_then(|canonical| self.user_of(&canonical));
            if user.is_none() {
                free.push(spec.clone());
            }
        }
        scan(&self.remotes[0], &free)
    }

    fn take_out(&self, name: &str) -> Result<Arc<Pool>> {
        let pool = self.pool(name)?;
        lock(&self.pools).remove(name);
        Ok(pool)
    }

    /// The loops of the engine's threads, for front ends to run their sessions on.
    pub fn remotes(&self) -> Vec<Remote> {
        self.remotes.clone()
    }

    /// Closes every pool, as `pool_export` does, for a clean shutdown.
    pub fn shutdown(&self) {
        let _opening = lock(&self.opening);
        let pools = std::mem::take(&mut *lock(&self.pools));
        for pool in pools.into_values() {
            if let Err(failed) = pool.close(false) {
                tracing::error!(pool = pool.name, error = %failed, "a pool was not closed cleanly");
            }
        }
    }

    /// Opens a drive, examines it and closes it again.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn drive_probe(&self, spec: &str) -> Result<DriveReport> {
        let canonical = drives::canonical(spec).ok();
        if let Some(user) = canonical
            .as_deref()
            .and_then(|canonical| self.user_of(canonical))
        {
            let pool = self.pool(&user)?;
            let pool_drives = lock(&pool.pool_drives);
            let pool_drive = pool_drives
                .iter()
                .find(|pool_drive| Some(&pool_drive.spec) == canonical.as_ref());
            if let Some(drive) = pool_drive.and_then(|pool_drive| pool_drive.drive.as_ref()) {
                let mut told = crate::pool::describe(spec, &block::Drive::info(&**drive), None);
                told.pool = Some(user);
                return Ok(told);
            }
        }
        let mut told = report(spec)?;
        if told.found.is_none() {
            let found = self.scan(&[spec.to_owned()])?.found;
            told.found = found
                .first()
                .map(|found| format!("convect pool '{}'", found.label.config.name));
        }
        Ok(told)
    }

    /// Creates a pool and opens it.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_create(&self, spec: &PoolSpec) -> Result<PoolStatus> {
        let _opening = lock(&self.opening);
        self.refuse_name(&spec.name)?;
        let specs: Vec<String> = spec
            .vdrives
            .iter()
            .flat_map(|vdrive| vdrive.drives.clone())
            .collect();
        self.refuse_used(&specs)?;
        let pool = Pool::create(&self.host(), spec)?;
        lock(&self.pools).insert(pool.name.clone(), pool.clone());
        pool.status()
    }

    /// Every open pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_list(&self) -> Result<Vec<PoolStatus>> {
        let pools: Vec<_> = lock(&self.pools).values().cloned().collect();
        pools.iter().map(|pool| pool.status()).collect()
    }

    /// One pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_status(&self, pool: &str) -> Result<PoolStatus> {
        self.pool(pool)?.status()
    }

    /// Every open pool with its volumes and their statistics; the shards of each are queried once. One that is
    /// being closed is left out.
    pub fn look(&self) -> Vec<PoolLook> {
        let pools: Vec<_> = lock(&self.pools).values().cloned().collect();
        let looks = pools.iter().filter_map(|pool| pool.look().ok());
        looks.collect()
    }

    /// The pools on these drives that are not open.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_scan(&self, drives: &[String]) -> Result<ScanReport> {
        let scanned = self.scan(drives)?;
        let passed_over = scanned.passed_over.iter();
        Ok(ScanReport {
            pools: importable(&scanned.found),
            passed_over: passed_over
                .map(|passed| passed.error.message.clone())
                .collect(),
        })
    }

    /// Opens the pool with the name or id `pool` from these drives.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_import(
        &self,
        drives: &[String],
        pool: &str,
        options: impl Into<ImportOptions>,
    ) -> Result<PoolStatus> {
        let mut options = options.into();
        let _opening = lock(&self.opening);
        let Scanned { found, passed_over } = self.scan(drives)?;
        let matches: Vec<_> = importable(&found)
            .into_iter()
            .filter(|known| known.name == pool || known.id == pool)
            .collect();
        let chosen = match &matches[..] {
            [] => {
                return error(
                    ErrorCode::NotFound,
                    format!(
                        "no pool '{pool}' is on these drives: see `convect pool import --drive ...` without a name"
                    ),
                );
            }
            [one] => one.clone(),
            _ => {
                return error(
                    ErrorCode::Invalid,
                    format!("several pools are called '{pool}': use the id of one of them"),
                );
            }
        };
        self.refuse_name(&chosen.name)?;
        let id: PoolId = chosen
            .id
            .parse()
            .map_err(|_| EngineError::new(ErrorCode::Damaged, "a pool's id is malformed"))?;
        if options.missing == MissingDrives::Gone {
            options.missing = match passed_over.iter().all(|passed| passed.gone) {
                true => MissingDrives::Allow,
                false => MissingDrives::Refuse,
            };
        }
        let opened = Pool::import(&self.host(), found, id, options)
            .map_err(|failed| because_of(failed, &passed_over))?;
        lock(&self.pools).insert(opened.name.clone(), opened.clone());
        opened.status()
    }

    /// Closes the pool's volumes for their front ends, makes everything durable and closes its drives.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_export(&self, pool: &str) -> Result<()> {
        let _opening = lock(&self.opening);
        self.take_out(pool)?.close(true)
    }

    /// Destroys the pool with all of its data: its labels are cleared.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_destroy(&self, pool: &str) -> Result<()> {
        let _opening = lock(&self.opening);
        self.take_out(pool)?.abandon();
        Ok(())
    }

    /// Compares the pool's maps with its space accounting, at rest: for tests.
    ///
    /// # Errors
    /// When a page cannot be loaded.
    pub fn pool_audit(&self, pool: &str) -> Result<Audit> {
        self.pool(pool)?.audit()
    }

    /// Whether nothing changes the pool's description right now, so that a change would not have to wait for another: for
    /// tests that do both on one thread.
    ///
    /// # Errors
    /// When no such pool is open.
    pub fn pool_is_steady(&self, pool: &str) -> Result<bool> {
        Ok(self.pool(pool)?.changing.try_lock().is_ok())
    }

    /// Holds or releases promotion into RAM and the fast tier.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_hold_promotion(&self, pool: &str, hold: bool) -> Result<()> {
        self.pool(pool)?
            .shared
            .promotion_held
            .store(hold, Ordering::Relaxed);
        Ok(())
    }

    /// Limits the pool's RAM cache to a number of bytes, until the pool is opened again. Excess data
    /// is evicted within about a second; the cache never has the only copy.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_set_ram(&self, pool: &str, bytes: u64) -> Result<()> {
        self.pool(pool)?.set_ram(bytes);
        Ok(())
    }

    /// Writes all dirty data back to the slow tier and evicts all clean copies, so that the pool is cold. Blocks until done.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_cool(&self, pool: &str) -> Result<()> {
        self.pool(pool)?.cool()
    }

    /// Starts a scrub, which reads and verifies all data of the pool and repairs bad copies;
    /// returns the job.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_scrub(&self, pool: &str, spec: &ScrubSpec) -> Result<u64> {
        self.pool(pool)?.start_scrub(spec)
    }

    /// Cancels the pool's scrub; repairs done so far are kept.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_scrub_cancel(&self, pool: &str) -> Result<()> {
        self.pool(pool)?.cancel_scrub()
    }

    /// The running scrub, or the last one, with its faults.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_scrub_status(&self, pool: &str) -> Result<ScrubStatus> {
        Ok(self.pool(pool)?.scrub_status())
    }

    /// Starts the scrub schedule at `since_s` (seconds since 1970) for a pool that was never
    /// scrubbed; later calls have no effect.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_scrub_since(&self, pool: &str, since_s: u64) -> Result<()> {
        self.pool(pool)?.scrub_since(since_s)
    }

    /// The anchor of the daemon's log of changes, stored in the pool ([`Engine::pool_set_anchor`]).
    ///
    /// # Errors
    /// `NotFound`.
    pub fn pool_anchor(&self, pool: &str) -> Result<Option<String>> {
        Ok(self.pool(pool)?.anchor())
    }

    /// Stores the anchor of the daemon's log of changes in the pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_set_anchor(&self, pool: &str, anchor: &str) -> Result<()> {
        self.pool(pool)?.set_anchor(anchor)
    }

    /// Sets the warning levels for the pool's usage, in per cent.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_warn_at(&self, pool: &str, levels: &[u8]) -> Result<PoolStatus> {
        let pool = self.pool(pool)?;
        pool.set_warnings(levels)?;
        pool.status()
    }

    /// Changes the pool's promotion budget.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_change(&self, pool: &str, change: &PoolChange) -> Result<PoolStatus> {
        let pool = self.pool(pool)?;
        pool.change(change)?;
        pool.status()
    }

    /// Records the bytes written to the pool's drives in the labels; for drives without a start of counting
    /// it is `now_s`, seconds since 1970.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_keep_wear(&self, pool: &str, now_s: u64) -> Result<()> {
        self.pool(pool)?.keep_wear(now_s)
    }

    /// Counters of the pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_counters(&self, pool: &str) -> Result<IoCounters> {
        self.pool(pool)?.counters()
    }

    /// The pool's moves by reason, since it was opened.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_moves(&self, pool: &str) -> Result<Vec<MoveCount>> {
        self.pool(pool)?.move_counts()
    }

    /// Forecasts other sizes of the fast tier for the pool and its volumes, from recent traffic.
    ///
    /// # Errors
    /// `Invalid` if the pool lacks a tier.
    pub fn pool_what_if(&self, pool: &str) -> Result<WhatIf> {
        self.pool(pool)?.what_if()
    }

    /// The exports stored in the pool.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_exports(&self, pool: &str) -> Result<Vec<ExportRecord>> {
        Ok(self.pool(pool)?.exports())
    }

    /// Replaces the exports stored in the pool, durably.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn pool_set_exports(&self, pool: &str, exports: Vec<ExportRecord>) -> Result<()> {
        self.pool(pool)?.set_exports(exports)
    }

    /// The persistent reservations of a volume, as stored last.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_reservations(&self, pool: &str, volume: &str) -> Result<Option<String>> {
        self.pool(pool)?.reservations(volume)
    }

    /// Stores the persistent reservations of a volume, durably; `None` removes them.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_set_reservations(
        &self,
        pool: &str,
        volume: &str,
        state: Option<String>,
    ) -> Result<()> {
        self.pool(pool)?.set_reservations(volume, state)
    }

    /// Adds a vdrive; returns its number.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn vdrive_add(&self, pool: &str, spec: &VdriveSpec, force: bool) -> Result<u8> {
        let _opening = lock(&self.opening);
        self.refuse_used(&spec.drives)?;
        self.pool(pool)?.add_vdrive(&self.host(), spec, force)
    }

    /// Starts to evacuate a vdrive; returns the job. The vdrive is removed from the pool when the job ends.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn vdrive_remove(&self, pool: &str, vdrive: u8) -> Result<u64> {
        self.pool(pool)?.remove_vdrive(vdrive)
    }

    /// Takes a drive offline: out of its mirrors, and closes it.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn drive_offline(&self, pool: &str, drive: &str) -> Result<()> {
        self.pool(pool)?.offline_drive(drive)
    }

    /// Brings a drive online in its mirrors; returns the resync job. With
    /// `force` also one that was used without the others, which is overwritten.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn drive_online(&self, pool: &str, drive: &str, force: bool) -> Result<u64> {
        let _opening = lock(&self.opening);
        self.pool(pool)?.online_drive(drive, force)
    }

    /// Replaces a mirror's drive by a new one; returns the resync job.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn drive_replace(&self, pool: &str, old: &str, new: &str, force: bool) -> Result<u64> {
        let _opening = lock(&self.opening);
        self.refuse_used(&[new.to_owned()])?;
        self.pool(pool)?
            .replace_drive(&self.host(), old, new, force)
    }

    /// Running and recent jobs, newest first.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn jobs(&self) -> Result<Vec<JobStatus>> {
        Ok(self.jobs.list())
    }

    /// Cancels a job; work done so far is kept.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn job_cancel(&self, job: u64) -> Result<()> {
        self.jobs.cancel(job)
    }

    /// Pauses a running job until it is resumed: also when its pool is closed and opened, or the host
    /// is restarted. Freeing of space continues while hosts wait for it.
    ///
    /// # Errors
    /// `NotFound` when there is no such job, `Invalid` when it has ended, or when no label can be written.
    pub fn job_pause(&self, job: u64) -> Result<()> {
        self.pause(job, true)
    }

    /// Resumes a paused job.
    ///
    /// # Errors
    /// As [`Engine::job_pause`]'s.
    pub fn job_resume(&self, job: u64) -> Result<()> {
        self.pause(job, false)
    }

    fn pause(&self, job: u64, paused: bool) -> Result<()> {
        let of = self.jobs.pausable(job)?;
        let pool = self.pool(&of.pool)?;
        pool.pause_job((of.kind, &of.subject), &of.progress, paused)
    }

    /// Creates a volume.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_create(&self, pool: &str, spec: &VolumeSpec) -> Result<VolumeStatus> {
        self.pool(pool)?.create_volume(spec)
    }

    /// The pool's volumes.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_list(&self, pool: &str) -> Result<Vec<VolumeStatus>> {
        self.pool(pool)?.volumes()
    }

    /// Grows a volume; shrinks it only with `shrink`, and data beyond its new end is lost.
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
        self.pool(pool)?.resize_volume(volume, size, shrink)
    }

    /// Changes a volume's quota, reservation and settings.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_change(
        &self,
        pool: &str,
        volume: &str,
        change: &VolumeChange,
    ) -> Result<VolumeStatus> {
        self.pool(pool)?.change_volume(volume, change)
    }

    /// Deletes a volume: closes it for its front ends and frees its space; returns the job.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_delete(&self, pool: &str, volume: &str) -> Result<u64> {
        self.pool(pool)?.delete_volume(volume)
    }

    /// The volume, for a front end. `initiator`: the initiator that uses this device, if
    /// known; each session may open one of its own.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_open(
        &self,
        pool: &str,
        volume: &str,
        initiator: Option<&str>,
    ) -> Result<std::sync::Arc<dyn block::BlockDevice>> {
        let pool = self.pool(pool)?;
        pool.open_volume_for(volume, initiator, None)
    }

    /// The same for an export, to which this device's operations are attributed ([`PoolLook::exports`]).
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_open_export(
        &self,
        pool: &str,
        volume: &str,
        export: &str,
        initiator: Option<&str>,
    ) -> Result<std::sync::Arc<dyn block::BlockDevice>> {
        let pool = self.pool(pool)?;
        pool.open_volume_for(volume, initiator, Some(export))
    }

    /// Progress of receiving a volume; `None` if it is not being received, or does not exist. Queries no shard, unlike
    /// [`Engine::volume_list`].
    ///
    /// # Errors
    /// When there is no such pool.
    pub fn volume_receiving(&self, pool: &str, volume: &str) -> Result<Option<ReceiveStatus>> {
        Ok(self.pool(pool)?.volume_receiving(volume))
    }

    /// Counters of the volume.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_counters(&self, pool: &str, volume: &str) -> Result<IoCounters> {
        self.pool(pool)?.volume_counters(volume)
    }

    /// The volume's LBA space in `cells` equal parts.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_map(
        &self,
        pool: &str,
        volume: &str,
        bytes: Range<u64>,
        cells: usize,
    ) -> Result<Vec<MapCell>> {
        self.pool(pool)?.map(volume, bytes, cells)
    }

    /// Location of the block with the logical block `lba` of a volume, and why it is there.
    ///
    /// # Errors
    /// With a sentence that says what to do.
    pub fn volume_explain(&self, pool: &str, volume: &str, lba: u64) -> Result<Explanation> {
        self.pool(pool)?.explain(volume, lba)
    }
}

/// A seed for a thread's random sequence, from the system.
fn seed(number: usize) -> Result<u64> {
    let random = reactor::control::entropy().map_err(|failed| {
        EngineError::new(
            ErrorCode::Io,
            format!("the system returns no random numbers: {failed}"),
        )
    })?;
    Ok(random as u64 ^ number as u64)
}
