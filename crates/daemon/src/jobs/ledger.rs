//! The list of jobs, stored in the state folder whenever one begins or ends.

use super::own::{OwnJob, OwnJobState};
use crate::clock;
use crate::lines::clip;
use crate::mapping::percent;
use crate::state::{JsonStore, StateFiles};
use crate::sync::lock;
use api::v1::{Job, JobState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The file in the state folder, and its maximum size in bytes.
const FILE: &str = "jobs.json";
const FILE_MAX: u64 = 8 << 20;
/// Maximum number of finished jobs kept.
const REMEMBERED: usize = 1000;
/// Maximum length of a message, in bytes.
const TEXT_MAX: usize = 1024;
/// Interval of writes while jobs run, in seconds.
const KEEP_S: u64 = 10;
/// Kinds of jobs that end with the daemon.
const OWN: [&str; 2] = ["send", "receive"];

/// What happened to a job of the previous daemon that is not running in this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It had completed.
    Done,
    /// It was being cancelled.
    Cancelled,
    /// It had not completed and cannot continue: why.
    Failed(String),
    /// It may continue: what it waits for.
    Waits(String),
}

#[derive(Serialize, Deserialize)]
struct StoredJobs {
    next: u64,
    jobs: Vec<Job>,
}

#[derive(Clone)]
struct JobEntry {
    job: Job,
    /// Its number in this daemon's engine.
    engine: Option<u64>,
    own: Option<Arc<OwnJobState>>,
}

#[derive(Default)]
struct All {
    known: BTreeMap<u64, JobEntry>,
    next: u64,
    changed: bool,
    /// Time of the last write: seconds since 1970.
    kept_s: u64,
    /// Writing fails, and that was logged.
    failing: bool,
}

/// The list of jobs. Locked briefly.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<JsonStore<StoredJobs>>,
    all: Arc<Mutex<All>>,
}

impl All {
    fn add(&mut self, job: Job, engine: Option<u64>, own: Option<Arc<OwnJobState>>) -> u64 {
        self.next += 1;
        let id = self.next;
        let known = JobEntry {
            job: Job { id, ..job },
            engine,
            own,
        };
        self.known.insert(id, known);
        self.changed = true;
        let ended = |known: &JobEntry| known.job.state.is_ended();
        let count = self.known.values().filter(|known| ended(known)).count();
        for _ in REMEMBERED..count {
            let oldest = self.known.iter().find(|(_, known)| ended(known));
            let Some(oldest) = oldest.map(|(id, _)| *id) else {
                break;
            };
            self.known.remove(&oldest);
        }
        id
    }

    /// Updates a job from the engine's report.
    fn take(&mut self, told: Job, now_s: u64) {
        let engine = Some(told.id);
        let mut all = self.known.values_mut();
        let same = all.find(|known| known.engine == engine);
        let known = match same {
            Some(known) => known,
            None => {
                // A job of the previous daemon continues.
                let goes_on = self.known.values_mut().find(|known| {
                    known.engine.is_none()
                        && known.own.is_none()
                        && !known.job.state.is_ended()
                        && (&known.job.kind, &known.job.subject) == (&told.kind, &told.subject)
                });
                match goes_on {
                    Some(known) => {
                        known.engine = engine;
                        self.changed = true;
                        known
                    }
                    None => {
                        let ended_s = told.state.is_ended().then_some(now_s);
                        let job = Job {
                            began_s: now_s,
                            ended_s,
                            ..told.clone()
                        };
                        let id = self.add(job, engine, None);
                        let Some(known) = self.known.get_mut(&id) else {
                            return;
                        };
                        known
                    }
                }
            }
        };
        if known.job.state.is_ended() {
            return;
        }
        let (id, began_s) = (known.job.id, known.job.began_s);
        let message = match told.state {
            JobState::Paused => format!("paused: resume it with `convect job resume {id}`"),
            _ => clip(&told.message, TEXT_MAX),
        };
        self.changed |= told.state != known.job.state;
        let ended_s = told.state.is_ended().then_some(now_s);
        known.job = Job {
            id,
            began_s,
            ended_s,
            message,
            ..told
        };
    }
}

impl JobEntry {
    fn end(&mut self, state: JobState, message: &str, now_s: u64) {
        self.job.state = state;
        message.clone_into(&mut self.job.message);
        self.job.ended_s = Some(now_s);
        self.job.seconds_left = None;
        if state == JobState::Done {
            self.job.done = self.job.total.max(self.job.done);
            self.job.total = self.job.done;
        }
    }

    /// Updates a job that the daemon itself runs.
    fn follow(&mut self, now_s: u64) -> bool {
        let Some(own) = self.own.as_ref().filter(|_| !self.job.state.is_ended()) else {
            return false;
        };
        let (done, rate) = (own.done(), own.rate());
        self.job.done = done;
        self.job.total = self.job.total.max(done);
        self.job.rate = rate;
        self.job.seconds_left = (rate > 0).then(|| (self.job.total - done) / rate.max(1));
        match own.ended() {
            None => return false,
            Some((Ok(()), _)) => self.end(JobState::Done, "", now_s),
            Some((Err(why), true)) => self.end(JobState::Cancelled, &clip(&why, TEXT_MAX), now_s),
            Some((Err(why), false)) => self.end(JobState::Failed, &clip(&why, TEXT_MAX), now_s),
        }
        true
    }
}

impl Ledger {
    /// The list of a state folder, not loaded yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            store: Arc::new(JsonStore::new(files, FILE, FILE_MAX, 0o640)),
            all: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        lock(&self.all)
    }

    /// Loads the list. Jobs that the previous daemon itself ran and had not finished have failed. A
    /// corrupt list is replaced by an empty one.
    pub fn load(&self, now_s: u64) {
        let Some(kept) = self.store.read() else {
            return;
        };
        let mut all = self.lock();
        all.next = kept.next;
        for job in kept.jobs {
            let mut known = JobEntry {
                job,
                engine: None,
                own: None,
            };
            let own = OWN.contains(&known.job.kind.as_str());
            if own && !known.job.state.is_ended() {
                let why = "the daemon stopped while it ran: start it again; a receiver resumes \
                 with --resume";
                known.end(JobState::Failed, why, now_s);
                all.changed = true;
            }
            all.next = all.next.max(known.job.id);
            all.known.insert(known.job.id, known);
        }
        self.keep(&mut all);
    }

    /// Writes the list if a job began or ended since the last write.
    fn keep(&self, all: &mut All) {
        if !all.changed {
            return;
        }
        let kept = StoredJobs {
            next: all.next,
            jobs: all.known.values().map(|known| known.job.clone()).collect(),
        };
        match self.store.write(&kept) {
            Ok(()) => (all.changed, all.failing) = (false, false),
            Err(error) => {
                if !std::mem::replace(&mut all.failing, true) {
                    tracing::error!("cannot store the list of jobs, retrying: {error}");
                }
            }
        }
    }

    /// Updates the list from the engine's report of its jobs, oldest first, at `now_s`. `fate`
    /// tells what happened to jobs of the previous daemon, by kind and subject.
    pub fn take(
        &self,
        told: impl IntoIterator<Item = Job>,
        fate: impl Fn(&str, &str) -> Fate,
        now_s: u64,
    ) {
        let mut all = self.lock();
        for job in told {
            all.take(job, now_s);
        }
        let mut changed = false;
        for known in all.known.values_mut() {
            changed |= known.follow(now_s);
            let orphan = known.engine.is_none() && known.own.is_none();
            if !orphan || known.job.state.is_ended() {
                continue;
            }
            changed = true;
            match fate(&known.job.kind, &known.job.subject) {
                Fate::Done => known.end(JobState::Done, "", now_s),
                Fate::Cancelled => {
                    known.end(JobState::Cancelled, "completed work is kept", now_s);
                }
                Fate::Failed(why) => known.end(JobState::Failed, &why, now_s),
                Fate::Waits(why) => {
                    changed = known.job.message != why;
                    known.job.message = why;
                    (known.job.rate, known.job.seconds_left) = (0, None);
                }
            }
        }
        // Store the progress of running jobs periodically.
        let mut known = all.known.values();
        let runs = known.any(|known| !known.job.state.is_ended());
        let due = all.kept_s.saturating_add(KEEP_S) <= now_s || all.kept_s > now_s;
        all.changed |= changed || (runs && due);
        if all.changed {
            all.kept_s = now_s;
        }
        self.keep(&mut all);
    }

    /// Updates and stores the daemon's own jobs immediately.
    fn settle(&self, now_s: u64) {
        let mut all = self.lock();
        for known in all.known.values_mut() {
            known.follow(now_s);
        }
        all.changed = true;
        self.keep(&mut all);
    }

    /// Adds a job that the daemon itself runs, with its total in bytes.
    pub fn begin(&self, kind: &str, subject: &str, total: u64, now_s: u64) -> OwnJob {
        let own = Arc::new(OwnJobState::default());
        let job = Job {
            id: 0,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            state: JobState::Running,
            done: 0,
            total,
            percent: 0.0,
            rate: 0,
            seconds_left: None,
            message: String::new(),
            began_s: now_s,
            ended_s: None,
        };
        let mut all = self.lock();
        all.add(job, None, Some(Arc::clone(&own)));
        self.keep(&mut all);
        let ledger = self.clone();
        OwnJob::new(&own, Box::new(move || ledger.settle(clock::now_s())))
    }

    /// The number of a job of this daemon's engine.
    pub fn of_engine(&self, engine: u64) -> Option<u64> {
        let all = self.lock();
        let mut known = all.known.iter();
        let found = known.find(|(_, known)| known.engine == Some(engine));
        found.map(|(id, _)| *id)
    }

    /// The engine's number of a job, if it has one.
    pub fn engine_number(&self, id: u64) -> Option<u64> {
        self.lock().known.get(&id)?.engine
    }

    /// Whether the daemon itself runs the job.
    pub fn is_own(&self, id: u64) -> bool {
        let all = self.lock();
        all.known.get(&id).is_some_and(|known| known.own.is_some())
    }

    /// The engine's number of a job to cancel, if it has one. A job of the daemon itself is asked
    /// to stop.
    pub fn cancel(&self, id: u64) -> Option<u64> {
        let all = self.lock();
        let known = all.known.get(&id)?;
        if let Some(own) = &known.own {
            own.cancel();
        }
        known.engine
    }

    /// Running jobs and the newest finished ones, at least `most` of each if there are, newest
    /// first.
    pub fn list(&self, most: usize) -> Vec<Job> {
        let all = self.lock();
        let jobs = all.known.values().rev().enumerate();
        let jobs = jobs
            .filter(|(index, known)| *index < most || !known.job.state.is_ended())
            .map(|(_, known)| known);
        let shown = |known: &JobEntry| {
            let job = known.job.clone();
            Job {
                percent: percent(job.state, job.done, job.total),
                ..job
            }
        };
        jobs.map(shown).collect()
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
