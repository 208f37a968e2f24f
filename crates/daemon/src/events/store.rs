//! Events and open alerts in the state folder: events in an append-only log, alerts in a file that
//! is replaced atomically.

use super::filter::Filter;
use super::watch::{Finding, Key, Watch};
use crate::lines::{Lines, clip};
use crate::state::{JsonStore, StateFiles};
use crate::sync::lock;
use api::v1::{Alert, Event, EventCode, EventList, EventState, Severity, Subject};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::watch;

/// The event log, and its size in bytes at which it rotates; the previous file is kept.
const FILE: &str = "events.log";
const FILE_MAX: u64 = 8 << 20;
/// The file of alerts, and its maximum size in bytes.
const ALERTS: &str = "alerts.json";
const ALERTS_FILE_MAX: u64 = 8 << 20;
/// Maximum number of events listed.
const TOLD_MAX: usize = 10_000;
/// Maximum number of open alerts; more wait until some are cleared.
const OPEN_MAX: usize = 1000;
/// Maximum length of an event's text, in bytes.
const TEXT_MAX: usize = 1024;

/// Events that a subscriber has not received yet.
#[derive(Default, PartialEq, Debug)]
pub struct UnreadEvents {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Number of earlier events that are no longer stored.
    pub lost: u64,
}

/// The stored alerts.
#[derive(Default, Serialize, Deserialize)]
struct StoredAlerts {
    /// Number of the newest event reflected in them.
    upto: u64,
    alerts: Vec<Alert>,
}

struct Store {
    lines: Lines,
    told: VecDeque<Event>,
    newest: u64,
    open: BTreeMap<Key, Alert>,
    watch: Watch,
}

/// Events and alerts. Locked briefly.
pub struct Events {
    kept: JsonStore<StoredAlerts>,
    store: Mutex<Store>,
    newest: watch::Sender<u64>,
}

/// An event without a number yet.
struct NewEvent {
    code: EventCode,
    state: EventState,
    subject: Subject,
    message: String,
    advice: String,
    of: Option<u64>,
}

impl Store {
    /// Adds an event read from the log.
    fn take(&mut self, event: Event) {
        if event.number <= self.newest {
            return;
        }
        self.newest = event.number;
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(event);
    }

    /// Appends an event. If it cannot be written, it is kept in memory only.
    fn tell(&mut self, happened: NewEvent, at_s: u64) -> Event {
        let event = Event {
            number: self.newest + 1,
            at_s,
            severity: happened.code.severity(),
            code: happened.code,
            state: happened.state,
            subject: happened.subject,
            message: clip(&happened.message, TEXT_MAX),
            advice: clip(&happened.advice, TEXT_MAX),
            runbook: happened.code.runbook(),
            of: happened.of,
        };
        let written = serde_json::to_string(&event)
            .map_err(std::io::Error::other)
            .and_then(|line| self.lines.append(&line));
        if let Err(error) = written {
            tracing::error!(
                "cannot write event {}; it is lost when the daemon stops: {error}",
                event.number
            );
        }
        self.take(event.clone());
        event
    }

    /// Applies an event to the open alerts.
    fn follow(&mut self, event: &Event, grade: u8) {
        let key = (event.code, event.subject.clone());
        match event.state {
            EventState::Noted => {}
            EventState::Cleared => drop(self.open.remove(&key)),
            EventState::Raised => {
                let before = self.open.get(&key);
                let (number, since_s) = before.map_or((event.number, event.at_s), |alert| {
                    (alert.number, alert.since_s)
                });
                let alert = Alert {
                    number,
                    since_s,
                    severity: event.severity,
                    code: event.code,
                    subject: event.subject.clone(),
                    message: event.message.clone(),
                    advice: event.advice.clone(),
                    runbook: event.runbook.clone(),
                    grade,
                };
                self.open.insert(key, alert);
            }
        }
    }
}

impl Events {
    /// The events of a state folder, not loaded yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            kept: JsonStore::new(files, ALERTS, ALERTS_FILE_MAX, 0o640),
            store: Mutex::new(Store {
                lines: Lines::new(files, FILE, FILE_MAX),
                told: VecDeque::new(),
                newest: 0,
                open: BTreeMap::new(),
                watch: Watch::default(),
            }),
            newest: watch::Sender::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }

    /// Loads the stored events and alerts, skipping malformed lines and unreadable files.
    pub fn load(&self) {
        let mut store = self.lock();
        match store.lines.load() {
            Ok(loaded) => {
                let events = loaded
                    .lines
                    .iter()
                    .map(|line| serde_json::from_slice::<Event>(line));
                events.flatten().for_each(|event| store.take(event));
            }
            Err(error) => tracing::error!("cannot read the stored events: {error}"),
        }
        let kept = self.kept.read().unwrap_or_default();
        let upto = kept.upto;
        // Numbers of lost events are not reused.
        store.newest = store.newest.max(upto);
        let alerts = kept.alerts.into_iter();
        store.open = alerts
            .map(|alert| ((alert.code, alert.subject.clone()), alert))
            .collect();
        // Events after the last write of the alerts: the daemon was killed in between.
        let later: Vec<Event> = store
            .told
            .iter()
            .filter(|event| event.number > upto)
            .cloned()
            .collect();
        for event in &later {
            store.follow(event, 0);
        }
        self.newest.send_replace(store.newest);
    }

    fn keep(&self, store: &Store) {
        let kept = StoredAlerts {
            upto: store.newest,
            alerts: store.open.values().cloned().collect(),
        };
        if let Err(error) = self.kept.write(&kept) {
            tracing::error!("cannot store the open alerts: {error}");
        }
    }

    fn announce(&self, store: &Store) {
        self.newest.send_replace(store.newest);
    }

    /// Records an instantaneous event.
    pub fn note(
        &self,
        code: EventCode,
        subject: Subject,
        (message, advice): (String, &str),
        at_s: u64,
    ) {
        let mut store = self.lock();
        let happened = NewEvent {
            code,
            state: EventState::Noted,
            subject,
            message,
            advice: advice.to_owned(),
            of: None,
        };
        let event = store.tell(happened, at_s);
        tracing::info!(
            "event {} {}: {}",
            event.number,
            code.as_str(),
            event.message
        );
        self.announce(&store);
    }

    /// Compares the findings of a check with the open alerts and raises, clears and updates alerts.
    /// `up_s` is monotonic, `at_s` seconds since 1970.
    pub fn look(&self, up_s: u64, at_s: u64, findings: Vec<Finding>) {
        let mut store = self.lock();
        let open: BTreeMap<Key, u8> = store
            .open
            .iter()
            .map(|(key, alert)| (key.clone(), alert.grade))
            .collect();
        let told = store.watch.look(up_s, &open, findings.iter().cloned());
        for finding in findings {
            // Severity and message may have changed.
            if let Some(alert) = store.open.get_mut(&finding.key()) {
                alert.message = clip(&finding.message, TEXT_MAX);
                alert.advice = clip(&finding.advice, TEXT_MAX);
            }
        }
        if told.raised.is_empty() && told.cleared.is_empty() {
            return;
        }
        for finding in told.raised {
            let known = store.open.contains_key(&finding.key());
            if !known && store.open.len() >= OPEN_MAX {
                tracing::debug!(
                    "{OPEN_MAX} alerts are open: {} is not raised",
                    finding.message
                );
                continue;
            }
            let happened = NewEvent {
                of: store.open.get(&finding.key()).map(|alert| alert.number),
                code: finding.code,
                state: EventState::Raised,
                subject: finding.subject,
                message: finding.message,
                advice: finding.advice,
            };
            let event = store.tell(happened, at_s);
            let code = event.code.as_str();
            tracing::warn!("alert {} {code}: {}", event.number, event.message);
            store.follow(&event, finding.grade);
        }
        for key in told.cleared {
            let Some(alert) = store.open.get(&key) else {
                continue;
            };
            let happened = NewEvent {
                of: Some(alert.number),
                code: key.0,
                state: EventState::Cleared,
                message: format!("resolved: {}", alert.message),
                subject: key.1,
                advice: String::new(),
            };
            let event = store.tell(happened, at_s);
            let (code, of) = (event.code.as_str(), event.of.unwrap_or_default());
            tracing::info!("alert {of} {code} cleared");
            store.follow(&event, 0);
        }
        self.keep(&store);
        self.announce(&store);
    }

    /// Flushes the events, so that they survive a power failure.
    pub fn flush(&self) {
        if let Err(error) = self.lock().lines.flush() {
            tracing::error!("cannot flush the events: {error}");
        }
    }

    /// Events, newest first.
    pub fn list(&self, filter: &Filter, limit: usize) -> EventList {
        let store = self.lock();
        let mut found = store.told.iter().rev().filter(|event| filter.takes(event));
        let items: Vec<Event> = found.by_ref().take(limit).cloned().collect();
        let last = items.last().map(|event| event.number);
        EventList {
            next: last.filter(|_| found.next().is_some()),
            items,
        }
    }

    /// At most `limit` events after the one with the number `after`, oldest first.
    pub fn after(&self, after: u64, limit: usize) -> UnreadEvents {
        let store = self.lock();
        let first = store.told.front().map_or(after + 1, |event| event.number);
        let new = store.told.iter().rev();
        let new = new.take_while(|event| event.number > after).count();
        let skipped = store.told.len() - new;
        UnreadEvents {
            events: store
                .told
                .iter()
                .skip(skipped)
                .take(limit)
                .cloned()
                .collect(),
            lost: first.saturating_sub(after + 1),
        }
    }

    /// Number of events after number `after` with at least this severity.
    pub fn count_after(&self, after: u64, severity: Severity) -> u64 {
        let store = self.lock();
        let new = store.told.iter().rev();
        let new = new.take_while(|event| event.number > after);
        new.filter(|event| event.severity >= severity).count() as u64
    }

    /// The open alert with a key.
    pub fn open(&self, key: &Key) -> Option<Alert> {
        self.lock().open.get(key).cloned()
    }

    /// The newest event with one of these codes.
    pub fn last_of(&self, codes: &[EventCode]) -> Option<Event> {
        let store = self.lock();
        let mut told = store.told.iter().rev();
        told.find(|event| codes.contains(&event.code)).cloned()
    }

    /// Number of the newest event.
    pub fn newest(&self) -> u64 {
        self.lock().newest
    }

    /// Notifies of each new event's number.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Open alerts, most severe first, then by age.
    pub fn alerts(&self) -> Vec<Alert> {
        let mut alerts: Vec<Alert> = self.lock().open.values().cloned().collect();
        alerts.sort_by_key(|alert| (std::cmp::Reverse(alert.severity), alert.number));
        alerts
    }
}
