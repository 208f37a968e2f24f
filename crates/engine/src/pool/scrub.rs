//! Scrubs of a pool: started, resumed, remembered in the labels.

use super::labels::{InPlace, read_all};
use super::shards::code_of;
use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, ScrubFaultStatus, ScrubSpec, ScrubStatus};
use crate::shard::{FaultPlace, Progress, Scrub, ScrubFault, ScrubPoint};
use block::DriveError;
use format::{LayoutConfig, ScrubRunning, ScrubTotals};
use reactor::control;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{BLOCK, VdriveId};

/// Interval of recording its progress, in nanoseconds.
const SLICE_NS: u64 = 60_000_000_000;
/// Minimum rate, in bytes per second.
const RATE_MIN: u64 = 1 << 20;
/// Faults reported with the pool's state.
const FEW: usize = 10;

impl Pool {
    /// Starts a scrub; returns the job.
    ///
    /// # Errors
    /// If one is running, or the rate is too low.
    pub fn start_scrub(self: &Arc<Self>, spec: &ScrubSpec) -> Result<u64> {
        let _changing = lock(&self.changing);
        if self.jobs.running("scrub", &self.name).is_some() {
            return Err(crate::control::busy("the pool is being scrubbed already"));
        }
        if spec.rate < RATE_MIN {
            return error(
                ErrorCode::Invalid,
                format!(
                    "{} a second is too slow for a scrub to complete: allow at least {}",
                    units::format_bytes(spec.rate),
                    units::format_bytes(RATE_MIN)
                ),
            );
        }
        let running = ScrubRunning {
            rate: spec.rate,
            at: vec![Some((0, 0)); self.shards.len()],
            totals: ScrubTotals {
                began_s: spec.began_s,
                ..ScrubTotals::default()
            },
        };
        self.update(|config| {
            config.scrub.running = Some(running.clone());
            Ok(())
        })?;
        self.run_scrub(running)
    }

    /// Resumes a scrub that is recorded in the labels.
    pub(super) fn resume_scrub(self: &Arc<Self>) {
        let Some(mut running) = self.config().scrub.running else {
            return;
        };
        if running.at.len() != self.shards.len() {
            running.at = vec![Some((0, 0)); self.shards.len()];
        }
        if let Err(failed) = self.run_scrub(running) {
            tracing::warn!(pool = self.name, error = %failed, "a scrub cannot be resumed");
        }
    }

    /// Cancels the running scrub.
    ///
    /// # Errors
    /// If none is running.
    pub fn cancel_scrub(&self) -> Result<()> {
        match self.jobs.running("scrub", &self.name) {
            Some(job) => self.jobs.cancel(job.id),
            None => error(
                ErrorCode::Invalid,
                format!("pool {} is not being scrubbed", self.name),
            ),
        }
    }

    /// Starts the schedule at `since_s` (seconds since 1970), unless it has started.
    ///
    /// # Errors
    /// When no label can be written.
    pub fn scrub_since(&self, since_s: u64) -> Result<()> {
        let _changing = lock(&self.changing);
        if self.config().scrub.since_s.is_some() {
            return Ok(());
        }
        self.update(|config| {
            config.scrub.since_s = Some(since_s);
            Ok(())
        })
    }

    fn run_scrub(self: &Arc<Self>, running: ScrubRunning) -> Result<u64> {
        let scrub = Arc::new(Scrub::new(running.rate, &running.totals));
        *lock(&self.scrub) = scrub.clone();
        let total = self.bytes_to_scrub()?;
        let (pool, done) = (self.clone(), running.totals.bytes);
        self.start_job(("scrub", "all"), (done, total), move |progress| {
            pool.scrub_shards(running, &scrub, &progress)
        })
    }

    /// Bytes in use on all drives, copies counted.
    fn bytes_to_scrub(&self) -> Result<u64> {
        let config = self.config();
        let copies = |id: VdriveId| {
            let parts = match id.0 {
                0 => Some(&config.meta.parts),
                id => {
                    let vdrive = config.vdrives.iter().find(|vdrive| vdrive.id == id);
                    vdrive
                        .filter(|vdrive| vdrive.layout == LayoutConfig::Mirror)
                        .map(|vdrive| &vdrive.parts)
                }
            };
            parts.map_or(1, |parts| parts.iter().filter(|part| !part.out).count())
        };
        let used: u64 = self
            .shard_statuses()?
            .iter()
            .flat_map(|shard| &shard.used)
            .map(|(id, blocks)| blocks * copies(*id) as u64)
            .sum();
        Ok(used * BLOCK as u64)
    }

    /// False when it was cancelled.
    fn scrub_shards(
        &self,
        mut running: ScrubRunning,
        scrub: &Arc<Scrub>,
        progress: &Arc<Progress>,
    ) -> Result<bool> {
        let before = running.totals.took_s;
        let mut took_ns = 0;
        loop {
            let (result, slice_ns) = self.scrub_slice(&mut running, scrub, progress);
            took_ns += slice_ns;
            running.totals.took_s = before + took_ns / 1_000_000_000;
            let ended = result.is_ok() && running.at.iter().all(Option::is_none);
            if ended {
                self.scrub_labels(scrub)?;
            }
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            running.totals.bytes = count(&progress.done);
            running.totals.blocks = count(&scrub.blocks);
            running.totals.errors = count(&scrub.errors);
            running.totals.repaired = count(&scrub.repaired);
            running.totals.lost = count(&scrub.lost);
            let (cancelled, closing) = (progress.is_cancelled(), progress.is_closing());
            let changing = lock(&self.changing);
            self.update(|config| {
                if ended || result.is_err() || (cancelled && !closing) {
                    config.scrub.running = None;
                    config.scrub.last = Some(running.totals);
                    config.scrub.cancelled = !ended;
                    if ended {
                        config.old.clear();
                        config.opening_lost = 0;
                    }
                } else {
                    config.scrub.running = Some(running.clone());
                }
                Ok(())
            })?;
            if ended || cancelled || result.is_err() {
                return result.map(|()| ended);
            }
            drop(changing);
            self.rest(progress)?;
        }
    }

    /// Runs every unfinished shard for a while, and returns the longest time, in nanoseconds of the
    /// loops' clock: it is recorded in the labels.
    fn scrub_slice(
        &self,
        running: &mut ScrubRunning,
        scrub: &Arc<Scrub>,
        progress: &Arc<Progress>,
    ) -> (Result<()>, u64) {
        let working = running.at.iter().flatten().count();
        scrub.working.store(working as u64, Ordering::Relaxed);
        let asked = self.shards.iter().zip(&running.at).map(|(shard, at)| {
            at.map(|(owner, key)| {
                let (scrub, progress) = (scrub.clone(), progress.clone());
                let from = ScrubPoint { owner, key };
                shard.ask(move |shard| async move {
                    let began_ns = shard.loop_handle().now_ns();
                    let result = shard.scrub(from, SLICE_NS, &scrub, &progress).await;
                    if matches!(result, Ok(None)) {
                        scrub.working.fetch_sub(1, Ordering::Relaxed);
                    }
                    (result, shard.loop_handle().now_ns() - began_ns)
                })
            })
        });
        let asked: Vec<_> = asked.collect();
        let (mut failure, mut longest_ns) = (None, 0);
        for (at, asked) in running.at.iter_mut().zip(asked) {
            let Some(asked) = asked else { continue };
            let Ok((result, took_ns)) = control::receive(asked) else {
                return (error(ErrorCode::Busy, "the pool is closing"), longest_ns);
            };
            longest_ns = longest_ns.max(took_ns);
            match result {
                Ok(next) => *at = next.map(|next| (next.owner, next.key)),
                Err(failed) => failure = Some(failed),
            }
        }
        let result = match failure {
            None => Ok(()),
            Some(failed) => error(
                code_of(&failed),
                format!("{failed}; repair the drive and scrub again"),
            ),
        };
        (result, longest_ns)
    }

    /// Checks every label; if one is bad, all are rewritten.
    fn scrub_labels(&self, scrub: &Scrub) -> Result<()> {
        let _changing = lock(&self.changing);
        if self.keeper.has_older() {
            self.update(|_| Ok(()))?;
        }
        let generation = self.keeper.generation.load(Ordering::Acquire);
        let pool_drives = lock(&self.pool_drives).clone();
        let mut faults = Vec::new();
        let mut incomplete = false;
        for pool_drive in &pool_drives {
            let Some(drive) = &pool_drive.drive else {
                continue;
            };
            if self.keeper.is_out(pool_drive.id) {
                continue;
            }
            let found = read_all(&self.remote, drive, pool_drive.size, &pool_drive.shared)?;
            if self.keeper.generation.load(Ordering::Acquire) != generation {
                // They were written meanwhile: the data read may be mixed.
                return Ok(());
            }
            let newest = format::label_slots_for(generation);
            for (slot, label) in found.iter().enumerate() {
                scrub.blocks.fetch_add(1, Ordering::Relaxed);
                let newest = newest.contains(&slot);
                match label {
                    InPlace::Whole(found) if !newest || *found == generation => {}
                    // A drive that joined recently has only the newest.
                    InPlace::Nothing if !newest => incomplete = true,
                    InPlace::Gone => {}
                    _ => faults.push(pool_drive.spec.clone()),
                }
            }
        }
        if faults.is_empty() && !incomplete {
            return Ok(());
        }
        // Two generations go to all four places.
        let written = self
            .update(|_| Ok(()))
            .and_then(|()| self.update(|_| Ok(())));
        for drive in faults {
            scrub.note(ScrubFault {
                volume: None,
                offset: 0,
                length: 0,
                place: FaultPlace::Label { drive },
                error: DriveError::Checksum,
                repaired: written.is_ok(),
            });
        }
        written
    }

    /// The running scrub, or the last one.
    pub fn scrub_status(&self) -> ScrubStatus {
        let config = self.config().scrub;
        let scrub = lock(&self.scrub).clone();
        let faults = scrub.faults();
        let faults = faults
            .iter()
            .map(|fault| self.fault_status(fault))
            .collect();
        let job = self.jobs.running("scrub", &self.name);
        if let (Some(job), Some(running)) = (job, &config.running) {
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            return ScrubStatus {
                state: job.state,
                began_s: running.totals.began_s,
                took_s: running.totals.took_s,
                bytes: job.done.max(running.totals.bytes),
                total: job.total,
                rate: job.rate,
                seconds_left: job.seconds_left,
                job: Some(job.id),
                blocks: count(&scrub.blocks),
                errors: count(&scrub.errors),
                repaired: count(&scrub.repaired),
                lost: count(&scrub.lost),
                faults,
            };
        }
        let state = match (&config.last, config.cancelled) {
            (None, _) => "never",
            (Some(_), true) => "cancelled",
            (Some(_), false) => "done",
        };
        let totals = config.last.unwrap_or_default();
        ScrubStatus {
            state: state.to_owned(),
            began_s: config
                .last
                .map_or(config.since_s.unwrap_or(0), |last| last.began_s),
            took_s: totals.took_s,
            bytes: totals.bytes,
            total: totals.bytes,
            blocks: totals.blocks,
            errors: totals.errors,
            repaired: totals.repaired,
            lost: totals.lost,
            faults,
            ..ScrubStatus::default()
        }
    }

    /// The same with only some of the faults.
    pub(super) fn scrub_summary(&self) -> ScrubStatus {
        let mut status = self.scrub_status();
        status.faults.truncate(FEW);
        status
    }

    fn fault_status(&self, fault: &ScrubFault) -> ScrubFaultStatus {
        let config = lock(&self.config);
        let volume = fault.volume.map(|id| config.layer_name(id));
        let drive = match &fault.place {
            FaultPlace::Label { drive } => drive.clone(),
            FaultPlace::Part { vdrive, part, .. } => {
                let parts = match vdrive.0 {
                    0 => Some(&config.meta.parts),
                    id => {
                        let vdrive = config.vdrives.iter().find(|vdrive| vdrive.id == id);
                        vdrive.map(|vdrive| &vdrive.parts)
                    }
                };
                let id = parts
                    .and_then(|parts| parts.get(*part))
                    .map(|part| &part.drive);
                let drive = config.drives.iter().find(|drive| Some(&drive.id) == id);
                drive.map_or_else(|| format!("(vdrive {vdrive})"), |drive| drive.spec.clone())
            }
        };
        ScrubFaultStatus {
            volume: volume.unwrap_or_default(),
            offset: fault.offset,
            length: fault.length,
            drive,
            error: fault.error.to_string(),
            repaired: fault.repaired,
        }
    }
}
