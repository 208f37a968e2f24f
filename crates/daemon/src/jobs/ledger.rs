//! Jobs by their numbers, kept in the state folder whenever one begins or ends.

use super::own::{Own, OwnJob};
use crate::clock;
use crate::lines::clip;
use crate::mapping::percent;
use crate::state::{JsonStore, StateFiles};
use crate::sync::lock;
use api::v1::{Job, JobState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The file in the state folder, and the longest that is read, in bytes.
const FILE: &str = "jobs.json";
const FILE_MAX: u64 = 8 << 20;
/// Jobs that ended and are remembered.
const REMEMBERED: usize = 1000;
/// Longest message, in bytes.
const TEXT_MAX: usize = 1024;
/// Time between two writes while jobs run, in seconds.
const KEEP_S: u64 = 10;
/// Kinds of jobs that end with the daemon.
const OWN: [&str; 2] = ["send", "receive"];

/// What became of a job that ran when the last daemon ended, and does not now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It had done all before.
    Done,
    /// It was to end before.
    Cancelled,
    /// It did not, and does not go on: why.
    Failed(String),
    /// It may go on: what it waits for.
    Waits(String),
}

#[derive(Serialize, Deserialize)]
struct Kept {
    next: u64,
    jobs: Vec<Job>,
}

#[derive(Clone)]
struct Known {
    job: Job,
    /// Its number in this daemon's engine.
    engine: Option<u64>,
    own: Option<Arc<Own>>,
}

#[derive(Default)]
struct All {
    known: BTreeMap<u64, Known>,
    next: u64,
    changed: bool,
    /// When it was kept last: seconds since 1970.
    kept_s: u64,
    /// It is not kept, and that was said.
    failing: bool,
}

/// The jobs. Locked for a look or a write only.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<JsonStore<Kept>>,
    all: Arc<Mutex<All>>,
}

impl All {
    fn add(&mut self, job: Job, engine: Option<u64>, own: Option<Arc<Own>>) -> u64 {
        self.next += 1;
        let id = self.next;
        let known = Known {
            job: Job { id, ..job },
            engine,
            own,
        };
        self.known.insert(id, known);
        self.changed = true;
        let ended = |known: &Known| known.job.state.is_ended();
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

    /// Takes a job as the engine tells of it.
    fn take(&mut self, told: Job, now_s: u64) {
        let engine = Some(told.id);
        let mut all = self.known.values_mut();
        let same = all.find(|known| known.engine == engine);
        let known = match same {
            Some(known) => known,
            None => {
                // One that ran when the last daemon ended goes on.
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
            JobState::Paused => format!("it waits for `convect job resume {id}`"),
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

impl Known {
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

    /// Takes what a job of the daemon's own says.
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
    /// That of a state folder, which was not read yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            store: Arc::new(JsonStore::new(files, FILE, FILE_MAX, 0o640)),
            all: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        lock(&self.all)
    }

    /// Reads what was kept. What the last daemon did itself and had not ended has failed. A list that is damaged begins
    /// empty.
    pub fn load(&self, now_s: u64) {
        let Some(kept) = self.store.read() else {
            return;
        };
        let mut all = self.lock();
        all.next = kept.next;
        for job in kept.jobs {
            let mut known = Known {
                job,
                engine: None,
                own: None,
            };
            let own = OWN.contains(&known.job.kind.as_str());
            if own && !known.job.state.is_ended() {
                let why = "the daemon ended while it ran: begin it again, a receiver goes on with --resume";
                known.end(JobState::Failed, why, now_s);
                all.changed = true;
            }
            all.next = all.next.max(known.job.id);
            all.known.insert(known.job.id, known);
        }
        self.keep(&mut all);
    }

    /// Writes the list, if a job began or ended since the last time.
    fn keep(&self, all: &mut All) {
        if !all.changed {
            return;
        }
        let kept = Kept {
            next: all.next,
            jobs: all.known.values().map(|known| known.job.clone()).collect(),
        };
        match self.store.write(&kept) {
            Ok(()) => (all.changed, all.failing) = (false, false),
            Err(error) => {
                if !std::mem::replace(&mut all.failing, true) {
                    tracing::error!("the list of jobs is not kept until this is mended: {error}");
                }
            }
        }
    }

    /// Brings the list up to date with what the engine tells of its jobs, oldest first, at `now_s`. `fate` says what
    /// became of one that ran when the last daemon ended, by its kind and subject.
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
                    known.end(JobState::Cancelled, "what it did so far stays done", now_s);
                }
                Fate::Failed(why) => known.end(JobState::Failed, &why, now_s),
                Fate::Waits(why) => {
                    changed = known.job.message != why;
                    known.job.message = why;
                    (known.job.rate, known.job.seconds_left) = (0, None);
                }
            }
        }
        // How far those are that run is kept now and then.
        let mut known = all.known.values();
        let runs = known.any(|known| !known.job.state.is_ended());
        let due = all.kept_s.saturating_add(KEEP_S) <= now_s || all.kept_s > now_s;
        all.changed |= changed || (runs && due);
        if all.changed {
            all.kept_s = now_s;
        }
        self.keep(&mut all);
    }

    /// Keeps at once what jobs of the daemon's own have come to.
    fn settle(&self, now_s: u64) {
        let mut all = self.lock();
        for known in all.known.values_mut() {
            known.follow(now_s);
        }
        all.changed = true;
        self.keep(&mut all);
    }

    /// Enters a job of the daemon's own, of so many bytes.
    pub fn begin(&self, kind: &str, subject: &str, total: u64, now_s: u64) -> OwnJob {
        let own = Arc::new(Own::default());
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

    /// The number of one of this engine's jobs.
    pub fn of_engine(&self, engine: u64) -> Option<u64> {
        let all = self.lock();
        let mut known = all.known.iter();
        let found = known.find(|(_, known)| known.engine == Some(engine));
        found.map(|(id, _)| *id)
    }

    /// The number in the engine of a job; nothing where it has none.
    pub fn engine_number(&self, id: u64) -> Option<u64> {
        self.lock().known.get(&id)?.engine
    }

    /// Whether the daemon does it itself.
    pub fn is_own(&self, id: u64) -> bool {
        let all = self.lock();
        all.known.get(&id).is_some_and(|known| known.own.is_some())
    }

    /// The number in the engine of a job; nothing where it has none. A job of the daemon's own is asked to end.
    pub fn cancel(&self, id: u64) -> Option<u64> {
        let all = self.lock();
        let known = all.known.get(&id)?;
        if let Some(own) = &known.own {
            own.cancel();
        }
        known.engine
    }

    /// The jobs that run and the newest of the others, so many of both at least, newest first.
    pub fn list(&self, most: usize) -> Vec<Job> {
        let all = self.lock();
        let jobs = all.known.values().rev().enumerate();
        let jobs = jobs
            .filter(|(index, known)| *index < most || !known.job.state.is_ended())
            .map(|(_, known)| known);
        let shown = |known: &Known| {
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
