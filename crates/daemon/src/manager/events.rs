//! Events as they are asked for, and those of the daemon itself.

use super::core::Manager;
use crate::events::{Events, Filter};
use api::v1::{self, EventCode, Subject, SubjectKind};

/// What events of the daemon itself are about.
fn daemon() -> Subject {
    Subject {
        kind: SubjectKind::Daemon,
        pool: None,
        name: "convect".to_owned(),
    }
}

impl Manager {
    /// What happened.
    pub fn events(&self) -> &Events {
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
}
