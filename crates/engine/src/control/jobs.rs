//! Long work: evacuating a vdrive, deleting a volume.

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
    took_s: Option<f64>,
}

/// The jobs of an engine.
#[derive(Default)]
pub struct Jobs {
    jobs: Mutex<BTreeMap<u64, Job>>,
    next: AtomicU64,
}

impl Jobs {
    /// Runs `work` on a thread of its own as a job; returns its number. `work` returns false when
    /// it was cancelled.
    pub fn start(
        self: &Arc<Self>,
        kind: &'static str,
        pool: &str,
        subject: &str,
        total: u64,
        work: impl FnOnce(Arc<Progress>) -> Result<bool> + Send + 'static,
    ) -> Result<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = Arc::new(Progress::default());
        let job = Job {
            kind,
            pool: pool.to_owned(),
            subject: format!("{pool}/{subject}"),
            state: "running",
            message: String::new(),
            progress: progress.clone(),
            total,
            began: now(),
            took_s: None,
        };
        self.forget_old();
        lock(&self.jobs).insert(id, job);
        let jobs = self.clone();
        let run = move || jobs.end(id, work(progress));
        match control::start(format!("job-{id}"), Box::new(run)) {
            Ok(()) => Ok(id),
            Err(failed) => {
                lock(&self.jobs).remove(&id);
                error(ErrorCode::Io, format!("no thread can be started: {failed}"))
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
        job.took_s = Some(elapsed_s(job.began));
        (job.state, job.message) = match result {
            Ok(true) => ("done", String::new()),
            Ok(false) => ("cancelled", "what it did so far stays done".to_owned()),
            Err(failed) => ("failed", failed.message),
        };
    }

    /// All jobs, newest first.
    pub fn list(&self) -> Vec<JobStatus> {
        lock(&self.jobs)
            .iter()
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
            None => error(
                ErrorCode::NotFound,
                format!("there is no job {id}: see `convect job list`"),
            ),
            Some(job) if job.state != "running" => error(
                ErrorCode::Invalid,
                format!("job {id} has ended already: {}", job.state),
            ),
            Some(job) if job.kind == "delete" => error(
                ErrorCode::Refused,
                format!("job {id} deletes a volume and cannot be taken back"),
            ),
            Some(job) => {
                job.progress.cancel.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Asks a pool's jobs to end, and waits for them.
    pub fn cancel_pool(&self, pool: &str) {
        for job in lock(&self.jobs).values().filter(|job| job.pool == pool) {
            job.progress.closing.store(true, Ordering::Relaxed);
            job.progress.cancel.store(true, Ordering::Relaxed);
        }
        wait_for(|| {
            lock(&self.jobs)
                .values()
                .all(|job| job.pool != pool || job.state != "running")
        });
    }

    /// A pool's running job of a kind.
    pub fn running(&self, kind: &str, pool: &str) -> Option<JobStatus> {
        let jobs = lock(&self.jobs);
        let mut running = jobs
            .iter()
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
    fn status(&self, id: u64) -> JobStatus {
        let done = self.progress.done.load(Ordering::Relaxed);
        let total = self.total.max(done);
        let seconds = self
            .took_s
            .unwrap_or_else(|| elapsed_s(self.began))
            .max(0.001);
        let rate = (done as f64 / seconds) as u64;
        let running = self.state == "running";
        let (done, total) = if self.state == "done" {
            (total, total)
        } else {
            (done, total)
        };
        JobStatus {
            id,
            kind: self.kind.to_owned(),
            subject: self.subject.clone(),
            state: self.state.to_owned(),
            done,
            total,
            rate,
            seconds_left: (running && rate > 0).then(|| (total - done) / rate),
            message: self.message.clone(),
        }
    }
}

/// An error for a job that is refused because another one runs.
pub(crate) fn busy(what: &str) -> EngineError {
    EngineError::new(ErrorCode::Busy, format!("{what}: see `convect job list`"))
}
