//! Events and alerts in the API, the daemon's own events, and notification targets.

use super::Result;
use crate::ServeError;
use crate::clock::now_s;
use crate::delivery::{Targets, deliver_now};
use crate::events::{Events, Filter};
use crate::names::check_name;
use crate::state::StateFiles;
use api::v1::{self, Event, EventCode, EventState, Problem, ProblemCode, Subject, SubjectKind};
use std::sync::Arc;

/// Subject of events about the daemon itself.
fn daemon() -> Subject {
    Subject {
        kind: SubjectKind::Daemon,
        pool: None,
        name: "convect".to_owned(),
    }
}

/// Events, alerts and notification targets of this daemon.
pub struct Notifications {
    events: Arc<Events>,
    targets: Arc<Targets>,
    /// Configured targets.
    configured: Vec<v1::TargetCreate>,
    /// Whether notifications may be sent to link-local addresses.
    link_local: bool,
}

impl Notifications {
    /// Events and targets of a state folder, not loaded yet, and the configured targets.
    pub(super) fn new(
        files: &StateFiles,
        configured: Vec<v1::TargetCreate>,
        link_local: bool,
    ) -> Self {
        Self {
            events: Arc::new(Events::new(files)),
            targets: Arc::new(Targets::new(files)),
            configured,
            link_local,
        }
    }

    /// Loads the stored events and targets.
    ///
    /// # Errors
    /// When a configured target is invalid.
    pub(super) fn load(&self) -> std::result::Result<(), ServeError> {
        self.events.load();
        self.targets.load(&self.configured, self.events.newest())
    }

    /// Whether notifications may be sent to link-local addresses.
    pub fn link_local(&self) -> bool {
        self.link_local
    }

    /// The events.
    pub fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Events, newest first.
    pub fn event_list(&self, filter: &Filter, limit: usize) -> v1::EventList {
        self.events.list(filter, limit)
    }

    /// Open alerts.
    pub fn alert_list(&self) -> v1::AlertList {
        v1::AlertList {
            items: self.events.alerts(),
        }
    }

    /// Records the daemon's start at `at_s`, seconds since 1970, and how the previous daemon
    /// stopped.
    pub(super) fn note_start(&self, at_s: u64) {
        let started = [
            EventCode::DaemonStarted,
            EventCode::DaemonKilled,
            EventCode::DaemonStopped,
        ];
        let before = self.events.last_of(&started);
        if before.is_some_and(|event| event.code != EventCode::DaemonStopped) {
            let message = "the previous daemon did not shut down cleanly: it was killed, or the \
             host lost power";
            let told = (
                message.to_owned(),
                "find the cause with `journalctl -u convect` and `dmesg`; pools recover \
                 automatically",
            );
            self.events
                .note(EventCode::DaemonKilled, daemon(), told, at_s);
        }
        let version = env!("CARGO_PKG_VERSION");
        let told = (format!("convect {version} started"), "");
        self.events
            .note(EventCode::DaemonStarted, daemon(), told, at_s);
    }

    /// Records an orderly stop.
    pub(super) fn note_stop(&self, at_s: u64) {
        let told = ("the daemon stopped".to_owned(), "");
        self.events
            .note(EventCode::DaemonStopped, daemon(), told, at_s);
        self.events.flush();
    }

    /// The notification targets.
    pub fn targets(&self) -> &Arc<Targets> {
        &self.targets
    }

    /// The targets as listed by the API.
    pub fn target_list(&self) -> v1::TargetList {
        v1::TargetList {
            items: self.targets.list(&self.events),
        }
    }

    /// Creates a target.
    ///
    /// # Errors
    /// When it is invalid, its name is taken, or it cannot be stored.
    pub fn target_create(&self, request: v1::TargetCreate) -> Result<v1::Target> {
        check_name("a target", &request.name)?;
        self.targets.create(request, self.events.newest())
    }

    /// Deletes a target.
    ///
    /// # Errors
    /// When it does not exist, is configured, or the change cannot be stored.
    pub fn target_delete(&self, name: &str) -> Result<()> {
        self.targets.delete(name)
    }

    /// Sends a test event to a target and waits for the result.
    ///
    /// # Errors
    /// When the target does not exist, or does not accept it.
    pub fn target_test(&self, name: &str) -> Result<()> {
        let target = self.targets.find(name)?;
        let code = EventCode::Test;
        let event = Event {
            number: 0,
            at_s: now_s(),
            severity: code.severity(),
            code,
            state: EventState::Noted,
            subject: Subject {
                kind: SubjectKind::Target,
                pool: None,
                name: name.to_owned(),
            },
            message: "this is a test event: the target is reachable".to_owned(),
            advice: String::new(),
            runbook: code.runbook(),
            of: None,
        };
        deliver_now(&target, &[event], self.link_local).map_err(|why| {
            let text = format!("target {name} is not reachable: {why}");
            Problem::new(ProblemCode::Io, text)
        })
    }
}
