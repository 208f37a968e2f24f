//! Long work: evacuating a vdrive, deleting a volume.

use super::pace::Pace;
use super::wait::{elapsed_s, now, wait_for};
use crate::control::types::{EngineError, ErrorCode, JobStatus};
use crate::pool::{Result, error, lock};
use crate::shard::Progress;
use reactor::control;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Ended jobs that are remembered.
const REMEMBERED: usize = 100;

struct Job {
    kind: &'static str,
    pool: String,
    subject: String,
    state: &'static str,
    message: String,
    progress: Arc<Progress>,
    total: u64,
    began: Instant,
    pace: Pace,
}

/// A job that can be paused, for its pool to do that.
pub(crate) struct Pausable {
    /// The pool's name.
    pub pool: String,
    /// Kind of the job.
    pub kind: &'static str,
    /// The object in the pool.
    pub subject: String,
    /// Its progress.
    pub progress: Arc<Progress>,
}

/// The jobs of an engine.
#[derive(Default)]
pub struct Jobs {
    jobs: Mutex<BTreeMap<u64, Job>>,
    next: AtomicU64,
}

impl Jobs {
    /// Runs `work` on a thread of its own as a job of a kind, of a pool, on a subject, of `total` bytes; returns its
    /// number. `work` returns false when it was cancelled.
    pub fn start(
        self: &Arc<Self>,
        (kind, pool, subject): (&'static str, &str, &str),
        total: u64,
        progress: Arc<Progress>,
        work: impl FnOnce(Arc<Progress>) -> Result<bool> + Send + 'static,
    ) -> Result<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let job = Job {
            kind,
            pool: pool.to_owned(),
            subject: format!("{pool}/{subject}"),
            state: "running",
            message: String::new(),
            pace: Pace::new(progress.done.load(Ordering::Relaxed)),
            progress: progress.clone(),
            total,
            began: now(),
        };
        self.forget_old();
        lock(&self.jobs).insert(id, job);
        let jobs = self.clone();
        let run = move || jobs.end(id, work(progress));
        match control::start(format!("job-{id}"), Box::new(run)) {
            Ok(()) => Ok(id),
            Err(failed) => {
                lock(&self.jobs).remove(&id);
                error(
                    ErrorCode::Io,
                    format!("a job's thread cannot be started: {failed}"),
                )
            }
        }
    }

    fn forget_old(&self) {
        let mut jobs = lock(&self.jobs);
        while jobs.len() > REMEMBERED {
            let oldest = jobs
                .iter()
                .find(|(_, job)| job.state != "running")
                .map(|(id, _)| *id);
            let Some(oldest) = oldest else { break };
            jobs.remove(&oldest);
        }
    }

    fn end(&self, id: u64, result: Result<bool>) {
        let mut jobs = lock(&self.jobs);
        let Some(job) = jobs.get_mut(&id) else { return };
        job.look();
        (job.state, job.message) = match result {
            Ok(true) => ("done", String::new()),
            Ok(false) => ("cancelled", "work done so far is kept".to_owned()),
            Err(failed) => ("failed", failed.message),
        };
    }

    /// All jobs, newest first.
    pub fn list(&self) -> Vec<JobStatus> {
        lock(&self.jobs)
            .iter_mut()
            .rev()
            .map(|(id, job)| job.status(*id))
            .collect()
    }

    /// Asks a job to end.
    ///
    /// # Errors
    /// When there is no such job, or it has ended.
    pub fn cancel(&self, id: u64) -> Result<()> {
        let jobs = lock(&self.jobs);
        match jobs.get(&id) {
            None => no_job(id),
            Some(job) if job.state != "running" => has_ended(id, job.state),
            Some(job) if job.kind == "delete" => error(
                ErrorCode::Refused,
                format!("job {id} deletes a volume and cannot be cancelled"),
            ),
            Some(job) => {
                job.progress.cancel();
                Ok(())
            }
        }
    }

    /// A running job, to pause or resume it.
    ///
    /// # Errors
    /// When there is no such job, or it has ended.
    pub(crate) fn pausable(&self, id: u64) -> Result<Pausable> {
        let mut jobs = lock(&self.jobs);
        match jobs.get_mut(&id) {
            None => no_job(id),
            Some(job) if job.state != "running" => has_ended(id, job.state),
            Some(job) => {
                // What went before was at another pace.
                job.look();
                let subject = job.subject.strip_prefix(&format!("{}/", job.pool));
                Ok(Pausable {
                    pool: job.pool.clone(),
                    kind: job.kind,
                    subject: subject.unwrap_or_default().to_owned(),
                    progress: job.progress.clone(),
                })
            }
        }
    }

    /// Asks a pool's jobs to end, and waits for them.
    pub fn cancel_pool(&self, pool: &str) {
        for job in lock(&self.jobs).values().filter(|job| job.pool == pool) {
            job.progress.close();
        }
        let ended = wait_for(|| {
            lock(&self.jobs)
                .values()
                .all(|job| job.pool != pool || job.state != "running")
        });
        if !ended {
            tracing::error!(
                pool,
                "a job of the pool has not ended: a drive is not responding"
            );
        }
    }

    /// A pool's job of a kind that runs or rests.
    pub fn running(&self, kind: &str, pool: &str) -> Option<JobStatus> {
        let mut jobs = lock(&self.jobs);
        let mut running = jobs
            .iter_mut()
            .filter(|(_, job)| job.state == "running" && job.kind == kind && job.pool == pool);
        running.next().map(|(id, job)| job.status(*id))
    }

    /// Whether a pool has a running job of a kind on a subject.
    pub fn is_running(&self, kind: &str, pool: &str, subject: &str) -> bool {
        let subject = format!("{pool}/{subject}");
        lock(&self.jobs)
            .values()
            .any(|job| job.state == "running" && job.kind == kind && job.subject == subject)
    }
}

impl Job {
    /// Takes note of how far it is now.
    fn look(&mut self) {
        let done = self.progress.done.load(Ordering::Relaxed);
        let works = !self.progress.is_paused();
        self.pace.look(elapsed_s(self.began), done, works);
    }

    fn status(&mut self, id: u64) -> JobStatus {
        let running = self.state == "running";
        if running {
            self.look();
        }
        let paused = running && self.progress.is_paused();
        let done = self.progress.done.load(Ordering::Relaxed);
        let total = self.total.max(done);
        let rate = match (paused, running) {
            (true, _) => 0,
            (false, true) => self.pace.rate(done),
            (false, false) => self.pace.mean(done),
        };
        let (done, total) = if self.state == "done" {
            (total, total)
        } else {
            (done, total)
        };
        JobStatus {
            id,
            kind: self.kind.to_owned(),
            subject: self.subject.clone(),
            state: if paused { "paused" } else { self.state }.to_owned(),
            done,
            total,
            rate,
            seconds_left: (running && rate > 0).then(|| (total - done) / rate),
            message: match paused {
                true => "paused: resume it with `convect job resume`".to_owned(),
                false => self.message.clone(),
            },
        }
    }
}

fn no_job<T>(id: u64) -> Result<T> {
    let text = format!("no job {id}: see `convect job list`");
    error(ErrorCode::NotFound, text)
}

fn has_ended<T>(id: u64, state: &str) -> Result<T> {
    let text = format!("job {id} has already ended: {state}");
    error(ErrorCode::Invalid, text)
}

/// An error for a job that is refused because another one runs.
pub(crate) fn busy(what: &str) -> EngineError {
    EngineError::new(ErrorCode::Busy, format!("{what}: see `convect job list`"))
}
