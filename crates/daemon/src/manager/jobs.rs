//! Jobs of the engine, of the daemon itself and of earlier daemons, with numbers that survive
//! restarts.

use super::Result;
use super::registry::PoolRegistry;
use crate::clock::now_s;
use crate::control::{Control, PoolCalls};
use crate::jobs::{Fate, Ledger, OwnJob};
use crate::mapping::ToApi;
use crate::state::StateFiles;
use api::v1::{self, Job, Problem, ProblemCode};
use engine::PoolStatus;
use std::sync::Arc;

/// Number of jobs in live data.
const JOBS_RECENT: usize = 100;

/// Fate of a job of an open pool that the engine does not continue; `deleting`: the deletion of its
/// volume is still in progress.
fn fate_in(pool: &PoolStatus, kind: &str, object: &str, deleting: bool) -> Fate {
    let failed = |text: &str| {
        Fate::Failed(format!(
            "the daemon stopped while it ran, and it cannot continue: {text}"
        ))
    };
    let mut drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
    match kind {
        "evacuate" => {
            let stays = pool
                .vdrives
                .iter()
                .any(|vdrive| format!("vdrive {}", vdrive.id) == object);
            match stays {
                true => failed("the vdrive is still in the pool: remove it again"),
                false => Fate::Done,
            }
        }
        "resync" => match drives.find(|drive| drive.spec == object) {
            Some(drive) if drive.state == "online" => Fate::Done,
            _ => failed("the drive is offline: bring it online with `convect pool online`"),
        },
        "scrub" => match pool.scrub.state.as_str() {
            "done" => Fate::Done,
            "cancelled" => Fate::Cancelled,
            _ => failed("start it again with `convect pool scrub`"),
        },
        "delete" if deleting => failed("the volume still exists: delete it again"),
        // Recovery finds the remains of deleted volumes and snapshots.
        "delete" | "reclaim" => Fate::Done,
        _ => failed("start it again"),
    }
}

/// Error for a job that waits for its pool.
fn not_under_way(job: &Job) -> Problem {
    let text = format!("job {} is not running: {}", job.id, job.message);
    Problem::new(ProblemCode::Busy, text)
}

/// Jobs of this daemon and of earlier ones.
pub struct Jobs {
    control: Arc<dyn Control>,
    registry: Arc<PoolRegistry>,
    ledger: Ledger,
}

impl Jobs {
    /// The jobs of a state folder, not loaded yet.
    pub(super) fn new(registry: &Arc<PoolRegistry>, files: &StateFiles) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            registry: Arc::clone(registry),
            ledger: Ledger::new(files),
        }
    }

    /// Loads the jobs of the previous daemon, at `now_s`, seconds since 1970.
    pub(super) fn load(&self, now_s: u64) {
        self.ledger.load(now_s);
    }

    /// Adds a job that the daemon itself runs, with its total in bytes.
    pub(super) fn begin(&self, kind: &str, subject: &str, total: u64) -> OwnJob {
        self.ledger.begin(kind, subject, total, now_s())
    }

    /// Fate of a job of the previous daemon.
    fn fate(&self, kind: &str, subject: &str) -> Fate {
        let (pool, object) = subject.split_once('/').unwrap_or((subject, ""));
        let Ok(status) = self.control.pool_status(pool) else {
            return match self.registry.absent(pool).is_some() {
                true => Fate::Waits(format!(
                    "pool {pool} is not open: the job continues once it is imported"
                )),
                false => Fate::Failed(format!("pool {pool} is no longer open here")),
            };
        };
        let volumes = self.control.volume_list(pool).unwrap_or_default();
        let mut deleting = volumes.iter().filter(|volume| volume.state == "deleting");
        fate_in(
            &status,
            kind,
            object,
            deleting.any(|volume| volume.name == object),
        )
    }

    /// Updates the list of jobs.
    ///
    /// # Errors
    /// As the engine's.
    pub(super) fn refresh(&self) -> Result<()> {
        let mut told = self.control.jobs().map_err(ToApi::to_api)?;
        told.reverse();
        let told: Vec<Job> = told.to_api();
        self.ledger
            .take(told, |kind, subject| self.fate(kind, subject), now_s());
        Ok(())
    }

    /// Reference to a job that the engine has just begun.
    pub(super) fn reference(&self, engine: u64) -> v1::JobRef {
        if let Err(problem) = self.refresh() {
            tracing::error!("cannot list the jobs: {problem}");
        }
        v1::JobRef {
            // The engine reports every job that it has begun.
            job: self.ledger.of_engine(engine).unwrap_or(engine),
        }
    }

    /// Jobs, newest first.
    ///
    /// # Errors
    /// As the engine's.
    pub fn list(&self) -> Result<v1::JobList> {
        self.refresh()?;
        Ok(v1::JobList {
            items: self.ledger.list(usize::MAX),
        })
    }

    /// Running jobs and some recently finished ones, newest first.
    pub(super) fn recent(&self) -> Vec<Job> {
        match self.refresh() {
            Ok(()) => self.ledger.list(JOBS_RECENT),
            Err(_) => Vec::new(),
        }
    }

    /// A job by its number.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn show(&self, job: u64) -> Result<Job> {
        let found = self.list()?.items.into_iter().find(|known| known.id == job);
        found.ok_or_else(|| {
            Problem::not_found(format!(
                "unknown job {job}: see `convect job list` for recent jobs"
            ))
        })
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// When it does not exist, has finished, or cannot be cancelled.
    pub fn cancel(&self, job: u64) -> Result<()> {
        let known = self.unfinished(job)?;
        match self.ledger.cancel(job) {
            Some(engine) => self.control.job_cancel(engine).map_err(ToApi::to_api),
            // A job of the daemon itself is asked to stop; a job that waits for its pool is not
            // running.
            None if known.message.is_empty() => Ok(()),
            None => Err(not_under_way(&known)),
        }
    }

    /// A job that has not finished.
    fn unfinished(&self, job: u64) -> Result<Job> {
        let known = self.show(job)?;
        if known.state.is_ended() {
            let text = format!("job {job} has already finished: {}", known.state.name());
            return Err(Problem::invalid(text));
        }
        Ok(known)
    }

    /// The engine's number of a job that can be paused.
    fn pausable(&self, job: u64) -> Result<u64> {
        let known = self.unfinished(job)?;
        if self.ledger.is_own(job) {
            let text = format!(
                "job {job} ({}) cannot be paused, as it ends with its connection: cancel it, and \
                 continue later with `convect send --resume TOKEN`",
                known.kind
            );
            return Err(Problem::new(ProblemCode::Refused, text));
        }
        let number = self.ledger.engine_number(job);
        number.ok_or_else(|| not_under_way(&known))
    }

    /// Pauses a job until it is resumed, even across restarts. No effect if it is paused.
    ///
    /// # Errors
    /// When it does not exist, has finished, is not running, or cannot be paused.
    pub fn pause(&self, job: u64) -> Result<()> {
        let number = self.pausable(job)?;
        self.control.job_pause(number).map_err(ToApi::to_api)
    }

    /// Resumes a paused job. No effect if it is running.
    ///
    /// # Errors
    /// As [`Jobs::pause`].
    pub fn resume(&self, job: u64) -> Result<()> {
        let number = self.pausable(job)?;
        self.control.job_resume(number).map_err(ToApi::to_api)
    }
}
