//! Events and alerts as the API shows them, the daemon's own events, and the targets that are notified.

use super::Result;
use crate::ServeError;
use crate::clock::now_s;
use crate::delivery::{Targets, deliver_now};
use crate::events::{Events, Filter};
use crate::names::check_name;
use crate::state::StateFiles;
use api::v1::{self, Event, EventCode, EventState, Problem, ProblemCode, Subject, SubjectKind};
use std::sync::Arc;

/// What events of the daemon itself are about.
fn daemon() -> Subject {
    Subject {
        kind: SubjectKind::Daemon,
        pool: None,
        name: "convect".to_owned(),
    }
}

/// Events and alerts of this daemon, and who is told of them.
pub struct Notifications {
    events: Arc<Events>,
    targets: Arc<Targets>,
    /// The targets of the configuration.
    configured: Vec<v1::TargetCreate>,
    /// Whether alerts also go to link-local addresses.
    link_local: bool,
}

impl Notifications {
    /// Those of a state folder, which were not read yet, and the targets of the configuration.
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

    /// Reads what was kept.
    ///
    /// # Errors
    /// When a target of the configuration cannot be.
    pub(super) fn load(&self) -> std::result::Result<(), ServeError> {
        self.events.load();
        self.targets.load(&self.configured, self.events.newest())
    }

    /// Whether alerts also go to link-local addresses.
    pub fn link_local(&self) -> bool {
        self.link_local
    }

    /// What happened.
    pub fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Events, newest first.
    pub fn event_list(&self, filter: &Filter, limit: usize) -> v1::EventList {
        self.events.list(filter, limit)
    }

    /// What is wrong now.
    pub fn alert_list(&self) -> v1::AlertList {
        v1::AlertList {
            items: self.events.alerts(),
        }
    }

    /// Notes that this daemon was started at `at_s`, seconds since 1970, and how the one before ended.
    pub(super) fn note_start(&self, at_s: u64) {
        let started = [
            EventCode::DaemonStarted,
            EventCode::DaemonKilled,
            EventCode::DaemonStopped,
        ];
        let before = self.events.last_of(&started);
        if before.is_some_and(|event| event.code != EventCode::DaemonStopped) {
            let message = "the daemon before this one did not end in order: it was killed, or the host lost its power";
            let told = (
                message.to_owned(),
                "look what ended it: `journalctl -u convect` and `dmesg` tell; pools recover by themselves",
            );
            self.events
                .note(EventCode::DaemonKilled, daemon(), told, at_s);
        }
        let version = env!("CARGO_PKG_VERSION");
        let told = (format!("convect {version} was started"), "");
        self.events
            .note(EventCode::DaemonStarted, daemon(), told, at_s);
    }

    /// Notes that it ended in order.
    pub(super) fn note_stop(&self, at_s: u64) {
        let told = ("the daemon ended".to_owned(), "");
        self.events
            .note(EventCode::DaemonStopped, daemon(), told, at_s);
        self.events.flush();
    }

    /// Who is told of events.
    pub fn targets(&self) -> &Arc<Targets> {
        &self.targets
    }

    /// The targets.
    pub fn target_list(&self) -> v1::TargetList {
        v1::TargetList {
            items: self.targets.list(&self.events),
        }
    }

    /// Makes a target.
    ///
    /// # Errors
    /// When it cannot be, its name is taken, or it cannot be kept.
    pub fn target_create(&self, request: v1::TargetCreate) -> Result<v1::Target> {
        check_name("a target", &request.name)?;
        self.targets.create(request, self.events.newest())
    }

    /// Deletes a target.
    ///
    /// # Errors
    /// When there is none, it is configured, or that cannot be kept.
    pub fn target_delete(&self, name: &str) -> Result<()> {
        self.targets.delete(name)
    }

    /// Tells a target of an event that is none, and waits for it.
    ///
    /// # Errors
    /// When there is no such target, or it does not take it.
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
            message: "somebody tries whether this target is reached: it is".to_owned(),
            advice: String::new(),
            runbook: code.runbook(),
            of: None,
        };
        deliver_now(&target, &[event], self.link_local).map_err(|why| {
            let text = format!("target {name} was not reached: {why}");
            Problem::new(ProblemCode::Io, text)
        })
    }
}
