//! Targets of alerts: made, looked at, tried and deleted.

use super::core::{Manager, Result, check_name};
use crate::clock::now_s;
use crate::delivery::{Targets, deliver_now};
use api::v1::{self, Event, EventCode, EventState, Problem, ProblemCode, Subject, SubjectKind};

impl Manager {
    /// Who is told of events.
    pub fn targets(&self) -> &Targets {
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
        deliver_now(&target, &[event], self.alerts_link_local).map_err(|why| {
            let text = format!("target {name} was not reached: {why}");
            Problem::new(ProblemCode::Io, text)
        })
    }
}
