//! Task management (RFC 7143, sections 11.5 and 11.6).

use crate::input::Input;
use crate::output::Data;
use crate::pdu::{FINAL, Head, Made, StatusNumber, response};
use crate::session::{Normal, Session};
use crate::tasks::Aborted;
use scsi::Nexus;
use std::io::Result;
use std::rc::Rc;

/// Functions (11.5.1).
const ABORT_TASK: u8 = 1;
const ABORT_TASK_SET: u8 = 2;
const CLEAR_TASK_SET: u8 = 4;
const UNIT_RESET: u8 = 5;
const WARM_RESET: u8 = 6;
const COLD_RESET: u8 = 7;
const REASSIGN: u8 = 8;

/// Responses (11.6.1).
const COMPLETE: u8 = 0;
const NO_TASK: u8 = 1;
const NO_UNIT: u8 = 2;
const NO_REASSIGNMENT: u8 = 4;
const NOT_SUPPORTED: u8 = 5;

/// A function of a nexus as a whole.
async fn run(function: u8, nexus: &Nexus) {
    match function {
        ABORT_TASK_SET => nexus.abort_own().await,
        CLEAR_TASK_SET => nexus.clear_task_set().await,
        UNIT_RESET => nexus.reset_unit(true).await,
        // Who resets a whole target knows; SAM-5 has no such function any more.
        _ => nexus.reset_unit(false).await,
    }
}

impl Session {
    pub(super) async fn function(self: &Rc<Self>, head: &Head, input: &mut Input) -> Result<()> {
        if self.segment(head, input).await?.is_none() || !self.takes_number(head) {
            return Ok(());
        }
        let made = Made::new(
            response::FUNCTION,
            FINAL,
            head.task_tag(),
            StatusNumber::Takes,
        );
        let function = head.flags() & 0x7f;
        let answer = match (&self.parts.normal, function) {
            (None, _) => Some(NOT_SUPPORTED),
            (Some(_), ABORT_TASK) => self.abort_task(head.word_20(), made),
            (Some(normal), ABORT_TASK_SET | CLEAR_TASK_SET | UNIT_RESET) => {
                let lun = head.lun();
                match lun.and_then(|lun| normal.luns.get(lun)) {
                    Some(nexus) => {
                        self.abort_all(lun);
                        self.run_functions(function, vec![nexus], made);
                        None
                    }
                    None => Some(NO_UNIT),
                }
            }
            (Some(normal), WARM_RESET | COLD_RESET) => {
                self.reset_target(normal, function, made);
                None
            }
            (Some(_), REASSIGN) => Some(NO_REASSIGNMENT),
            _ => Some(NOT_SUPPORTED),
        };
        if let Some(answer) = answer {
            self.parts.output.push(made.byte(2, answer), Data::None);
        }
        Ok(())
    }

    /// ABORT TASK: the answer, or none when it comes once the command has ended.
    fn abort_task(self: &Rc<Self>, tag: u32, made: Made) -> Option<u8> {
        let aborted = self
            .tasks
            .borrow_mut()
            .abort(tag, Some(made.byte(2, COMPLETE)));
        match aborted {
            Aborted::NotThere => Some(NO_TASK),
            Aborted::Later => None,
            Aborted::Now(task) => {
                self.forget(&task);
                self.give_back(&task);
                self.begin_ready();
                Some(COMPLETE)
            }
        }
    }

    /// Drops what does not run yet, and has nothing answered of what does.
    fn abort_all(self: &Rc<Self>, lun: Option<u16>) {
        let tags = self.tasks.borrow().of(lun);
        for tag in tags {
            let aborted = self.tasks.borrow_mut().abort(tag, None);
            if let Aborted::Now(task) = aborted {
                self.forget(&task);
                self.give_back(&task);
            }
        }
        self.begin_ready();
    }

    /// Resets every unit that the session reaches; others of the target are not for it.
    fn reset_target(self: &Rc<Self>, normal: &Normal, function: u8, made: Made) {
        self.abort_all(None);
        self.run_functions(function, normal.luns.all(), made);
    }

    /// Answers when all nexuses are done with it.
    fn run_functions(self: &Rc<Self>, function: u8, nexuses: Vec<Rc<Nexus>>, made: Made) {
        let session = self.clone();
        self.parts.handle.spawn(async move {
            for nexus in nexuses {
                run(function, &nexus).await;
            }
            session
                .parts
                .output
                .push(made.byte(2, COMPLETE), Data::None);
        });
    }
}
