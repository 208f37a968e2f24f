//! Jobs of this daemon's engine, of the daemon itself and of earlier daemons, by numbers that outlive it.

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

/// Jobs that are told of live.
const JOBS_RECENT: usize = 100;

/// What became of a job of a pool that is open, and whose engine does not go on with it; `deleting`: its volume is being
/// deleted still.
fn fate_in(pool: &PoolStatus, kind: &str, object: &str, deleting: bool) -> Fate {
    let failed = |text: &str| {
        Fate::Failed(format!(
            "the daemon ended while it ran, and it does not go on: {text}"
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
                true => failed("the vdrive stays in the pool, remove it again"),
                false => Fate::Done,
            }
        }
        "resync" => match drives.find(|drive| drive.spec == object) {
            Some(drive) if drive.state == "online" => Fate::Done,
            _ => failed("the drive is out, bring it back with `convect pool online`"),
        },
        "scrub" => match pool.scrub.state.as_str() {
            "done" => Fate::Done,
            "cancelled" => Fate::Cancelled,
            _ => failed("begin it again with `convect pool scrub`"),
        },
        "delete" if deleting => failed("the volume is there still, delete it again"),
        // What is left of deleted volumes and snapshots is looked for at each opening.
        "delete" | "reclaim" => Fate::Done,
        _ => failed("begin it again"),
    }
}

/// For a job that waits for its pool.
fn not_under_way(job: &Job) -> Problem {
    let text = format!("job {} is not under way: {}", job.id, job.message);
    Problem::new(ProblemCode::Busy, text)
}

/// The jobs of this daemon and of those before it.
pub struct Jobs {
    control: Arc<dyn Control>,
    registry: Arc<PoolRegistry>,
    ledger: Ledger,
}

impl Jobs {
    /// Those of a state folder, which were not read yet.
    pub(super) fn new(registry: &Arc<PoolRegistry>, files: &StateFiles) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            registry: Arc::clone(registry),
            ledger: Ledger::new(files),
        }
    }

    /// Reads those of the last daemon, at `now_s`, seconds since 1970.
    pub(super) fn load(&self, now_s: u64) {
        self.ledger.load(now_s);
    }

    /// Enters a job of the daemon's own, of so many bytes.
    pub(super) fn begin(&self, kind: &str, subject: &str, total: u64) -> OwnJob {
        self.ledger.begin(kind, subject, total, now_s())
    }

    /// What became of a job of the last daemon.
    fn fate(&self, kind: &str, subject: &str) -> Fate {
        let (pool, object) = subject.split_once('/').unwrap_or((subject, ""));
        let Ok(status) = self.control.pool_status(pool) else {
            return match self.registry.absent(pool).is_some() {
                true => Fate::Waits(format!(
                    "pool {pool} is not open: it goes on when that is imported"
                )),
                false => Fate::Failed(format!("pool {pool} is not open here any more")),
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

    /// Brings the list of jobs up to date.
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

    /// A job that the engine has just begun.
    pub(super) fn reference(&self, engine: u64) -> v1::JobRef {
        if let Err(problem) = self.refresh() {
            tracing::error!("the jobs cannot be looked at: {problem}");
        }
        v1::JobRef {
            // The engine tells of every job that it has just begun.
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

    /// Jobs that run and some recently ended ones, newest first.
    pub(super) fn recent(&self) -> Vec<Job> {
        match self.refresh() {
            Ok(()) => self.ledger.list(JOBS_RECENT),
            Err(_) => Vec::new(),
        }
    }

    /// One job.
    ///
    /// # Errors
    /// When there is none of this number.
    pub fn show(&self, job: u64) -> Result<Job> {
        let found = self.list()?.items.into_iter().find(|known| known.id == job);
        found.ok_or_else(|| {
            Problem::not_found(format!(
                "there is no job {job}: `convect job list` shows the recent ones"
            ))
        })
    }

    /// Ends a job.
    ///
    /// # Errors
    /// When there is none of this number, it has ended, or cannot be ended.
    pub fn cancel(&self, job: u64) -> Result<()> {
        let known = self.unfinished(job)?;
        match self.ledger.cancel(job) {
            Some(engine) => self.control.job_cancel(engine).map_err(ToApi::to_api),
            // One of the daemon's own is asked to end; one that waits for its pool is not under way.
            None if known.message.is_empty() => Ok(()),
            None => Err(not_under_way(&known)),
        }
    }

    /// A job that has not ended.
    fn unfinished(&self, job: u64) -> Result<Job> {
        let known = self.show(job)?;
        if known.state.is_ended() {
            let text = format!("job {job} has ended already: {}", known.state.name());
            return Err(Problem::invalid(text));
        }
        Ok(known)
    }

    /// The engine's number of a job that can rest.
    fn pausable(&self, job: u64) -> Result<u64> {
        let known = self.unfinished(job)?;
        if self.ledger.is_own(job) {
            let text = format!(
                "job {job} is a {} and lives as long as its connection: cancel it, and go on later with \
                 `convect send --resume TOKEN`",
                known.kind
            );
            return Err(Problem::new(ProblemCode::Refused, text));
        }
        let number = self.ledger.engine_number(job);
        number.ok_or_else(|| not_under_way(&known))
    }

    /// Has a job rest until it is told to go on, over restarts too. One that rests already does so.
    ///
    /// # Errors
    /// When there is none of this number, it has ended, is not under way, or cannot rest.
    pub fn pause(&self, job: u64) -> Result<()> {
        let number = self.pausable(job)?;
        self.control.job_pause(number).map_err(ToApi::to_api)
    }

    /// Has a job that rests go on. One that does so already does so.
    ///
    /// # Errors
    /// As [`Jobs::pause`]'s.
    pub fn resume(&self, job: u64) -> Result<()> {
        let number = self.pausable(job)?;
        self.control.job_resume(number).map_err(ToApi::to_api)
    }
}
