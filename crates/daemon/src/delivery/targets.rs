//! Notification targets, from the configuration and created by users, with the progress of each in
//! the state folder.

use super::check::{check, route};
use super::progress::Progress;
use super::webhook::Place;
use crate::ServeError;
use crate::events::Events;
use crate::state::{JsonStore, StateFiles};
use crate::sync::lock;
use api::v1::{Event, Problem, ProblemCode, Target, TargetCreate, TargetTo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// The file in the state folder, which contains secrets, and its maximum size in bytes.
const FILE: &str = "targets.json";
const FILE_MAX: u64 = 4 << 20;
/// Maximum number of targets.
pub const TARGETS_MAX: usize = 16;
/// Maximum number of events scanned at a time.
const LOOK_MAX: usize = 1000;
/// Maximum number of events in one mail.
const MAIL_MAX: usize = 50;

type Result<T> = std::result::Result<T, Problem>;

/// The stored form.
#[derive(Default, Serialize, Deserialize)]
struct StoredTargets {
    targets: Vec<TargetCreate>,
    /// Number of the last event delivered to each target, by name, including configured ones.
    marks: BTreeMap<String, u64>,
}

struct TargetEntry {
    create: TargetCreate,
    configured: bool,
    progress: Progress,
    /// A delivery is in progress.
    busy: bool,
    /// Distinguishes targets of the same name over time.
    generation: u64,
}

#[derive(Default)]
struct All {
    known: BTreeMap<String, TargetEntry>,
    generations: u64,
}

/// Events to be delivered to a target.
pub struct Work {
    /// The target.
    pub to: TargetCreate,
    /// Oldest first; at least one.
    pub events: Vec<Event>,
    generation: u64,
    /// Mark of the target once these are delivered.
    upto: u64,
}

/// The targets. Locked briefly, never during a delivery.
pub struct Targets {
    store: JsonStore<StoredTargets>,
    all: Mutex<All>,
    changed: watch::Sender<()>,
}

impl TargetEntry {
    fn shown(&self, waiting: u64) -> Target {
        let (kind, address, authenticated) = match &self.create.to {
            TargetTo::Webhook { url, secret } => (
                "webhook",
                Place::parse(url.expose()).map_or_else(|why| why, |place| place.shown()),
                secret.is_some(),
            ),
            TargetTo::Email { user, .. } => (
                "email",
                route(&self.create).map_or(String::new(), |route| route.shown()),
                user.is_some(),
            ),
        };
        Target {
            name: self.create.name.clone(),
            kind: kind.to_owned(),
            address,
            severity: self.create.severity,
            authenticated,
            configured: self.configured,
            delivered: self.progress.delivered,
            lost: self.progress.lost,
            waiting,
            failures: self.progress.failures,
            error: self.progress.error.clone(),
        }
    }

    /// The next delivery, if any.
    fn next(&mut self, events: &Events) -> Option<Work> {
        let news = events.after(self.progress.mark, LOOK_MAX);
        let first = news.events.first()?.number;
        if news.lost > 0 {
            self.progress.lost += news.lost;
            self.progress.skip(first - 1);
        }
        let newest = news.events.last()?.number;
        let most = match self.create.to {
            TargetTo::Webhook { .. } => 1,
            TargetTo::Email { .. } => MAIL_MAX,
        };
        let wanted = news
            .events
            .into_iter()
            .filter(|event| event.severity >= self.create.severity);
        let events: Vec<Event> = wanted.take(most).collect();
        let Some(last) = events.last() else {
            self.progress.skip(newest);
            return None;
        };
        self.busy = true;
        Some(Work {
            to: self.create.clone(),
            upto: last.number,
            events,
            generation: self.generation,
        })
    }
}

impl All {
    fn add(&mut self, create: TargetCreate, configured: bool, mark: u64) {
        self.generations += 1;
        let known = TargetEntry {
            progress: Progress::from(mark),
            configured,
            busy: false,
            generation: self.generations,
            create,
        };
        self.known.insert(known.create.name.clone(), known);
    }

    fn kept(&self) -> StoredTargets {
        let made = self.known.values().filter(|known| !known.configured);
        let marks = self.known.iter();
        StoredTargets {
            targets: made.map(|known| known.create.clone()).collect(),
            marks: marks
                .map(|(name, known)| (name.clone(), known.progress.mark))
                .collect(),
        }
    }
}

impl Targets {
    /// Targets of a state folder, not loaded yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            store: JsonStore::new(files, FILE, FILE_MAX, 0o600),
            all: Mutex::default(),
            changed: watch::Sender::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        lock(&self.all)
    }

    /// Loads the stored targets and adds the configured ones. A new target receives the events
    /// after `newest`.
    ///
    /// # Errors
    /// When a configured target is invalid.
    pub fn load(
        &self,
        configured: &[TargetCreate],
        newest: u64,
    ) -> std::result::Result<(), ServeError> {
        let kept = self.store.read().unwrap_or_default();
        let mut all = self.lock();
        let mark = |name: &str| kept.marks.get(name).copied().unwrap_or(newest).min(newest);
        for create in kept.targets {
            let mark = mark(&create.name);
            all.add(create, false, mark);
        }
        for create in configured {
            let name = &create.name;
            let wrong = |why: &str| {
                ServeError::new(format!(
                    "the alert target {name} of the configuration is invalid: {why}"
                ))
            };
            check(create).map_err(|why| wrong(&why))?;
            if all.known.get(name).is_some_and(|known| known.configured) {
                return Err(wrong("the name is used twice: rename one"));
            }
            all.add(create.clone(), true, mark(name));
        }
        Ok(())
    }

    /// Creates a target, which receives the events after `newest`.
    ///
    /// # Errors
    /// When it is invalid, its name is taken, or it cannot be stored.
    pub fn create(&self, create: TargetCreate, newest: u64) -> Result<Target> {
        check(&create).map_err(Problem::invalid)?;
        let mut all = self.lock();
        if all.known.contains_key(&create.name) {
            let text = format!("target {} already exists", create.name);
            return Err(Problem::new(ProblemCode::Exists, text));
        }
        if all.known.len() >= TARGETS_MAX {
            let text = format!("the limit of {TARGETS_MAX} targets is reached: delete one");
            return Err(Problem::new(ProblemCode::TooMany, text));
        }
        let mut kept = all.kept();
        kept.marks.insert(create.name.clone(), newest);
        kept.targets.push(create.clone());
        self.store.write_for_caller("the targets", &kept)?;
        let name = create.name.clone();
        all.add(create, false, newest);
        self.changed.send_replace(());
        Ok(all.known[&name].shown(0))
    }

    /// Deletes a target.
    ///
    /// # Errors
    /// When it does not exist, is part of the configuration, or the change cannot be stored.
    pub fn delete(&self, name: &str) -> Result<()> {
        let mut all = self.lock();
        if all.known.get(name).ok_or_else(|| absent(name))?.configured {
            let text =
                format!("target {name} is part of the daemon's configuration: delete it there");
            return Err(Problem::new(ProblemCode::Refused, text));
        }
        let mut kept = all.kept();
        kept.targets.retain(|known| known.name != name);
        kept.marks.remove(name);
        self.store.write_for_caller("the targets", &kept)?;
        all.known.remove(name);
        Ok(())
    }

    /// A target by its name.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn find(&self, name: &str) -> Result<TargetCreate> {
        let all = self.lock();
        let known = all.known.get(name).ok_or_else(|| absent(name))?;
        Ok(known.create.clone())
    }

    /// The targets, by name.
    pub fn list(&self, events: &Events) -> Vec<Target> {
        let all = self.lock();
        let waiting =
            |known: &TargetEntry| events.count_after(known.progress.mark, known.create.severity);
        let shown = all.known.values().map(|known| known.shown(waiting(known)));
        shown.collect()
    }

    /// Targets that have failed for long enough to raise an alert, and why.
    pub fn failing(&self) -> Vec<(String, String)> {
        let all = self.lock();
        let failing = all.known.values().filter(|known| known.progress.fails());
        let told = failing.map(|known| {
            let why = known.progress.error.clone().unwrap_or_default();
            (known.create.name.clone(), why)
        });
        told.collect()
    }

    /// Deliveries to start at `now`, and when the next may be due; times are since the daemon's
    /// start.
    pub(super) fn take_due(&self, events: &Events, now: Duration) -> (Vec<Work>, Option<Duration>) {
        let mut all = self.lock();
        let (mut work, mut next) = (Vec::new(), None);
        for known in all.known.values_mut().filter(|known| !known.busy) {
            let due = known.progress.due();
            if due > now {
                next = Some(next.map_or(due, |next: Duration| next.min(due)));
            } else {
                work.extend(known.next(events));
            }
        }
        (work, next)
    }

    /// Records the result of a delivery at `now`.
    pub(super) fn ended(
        &self,
        work: &Work,
        result: std::result::Result<(), String>,
        now: Duration,
    ) {
        let mut all = self.lock();
        let known = all.known.get_mut(&work.to.name);
        let Some(known) = known.filter(|known| known.generation == work.generation) else {
            return;
        };
        known.busy = false;
        let count = work.events.len() as u64;
        match result {
            Ok(()) => known.progress.succeeded(work.upto, count),
            Err(why) => {
                tracing::warn!("target {}: {why}", work.to.name);
                known.progress.failed(work.upto, count, why, now);
            }
        }
        if known.progress.mark == work.upto
            && let Err(error) = self.store.write(&all.kept())
        {
            tracing::error!("cannot store the progress of notification targets: {error}");
        }
        self.changed.send_replace(());
    }

    /// Notifies of changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

fn absent(name: &str) -> Problem {
    let text = format!("unknown target {name}: see `convect alert target list`");
    Problem::not_found(text)
}
