//! Task management functions (RFC 7143, sections 11.5, 11.6 and 4.2.3).

use crate::channel::Channel;
use crate::output::{Data, Pdu};
use crate::pdu::{FINAL, Head, Made, StatusNumber, response};
use crate::session::Session;
use crate::tasks::{Aborted, NO_TURN};
use scsi::Nexus;
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
const REJECTED: u8 = 255;

/// Executes a function of a nexus.
async fn run(function: u8, nexus: &Nexus) {
    match function {
        ABORT_TASK_SET => nexus.abort_own().await,
        CLEAR_TASK_SET => nexus.clear_task_set().await,
        UNIT_RESET => nexus.reset_unit(true).await,
        // Target resets (removed from SAM-5): the initiator knows of its own reset.
        _ => nexus.reset_unit(false).await,
    }
}

impl Session {
    pub(super) fn function(self: &Rc<Self>, channel: &Rc<Channel>, head: &Head) {
        let made = Made::new(
            response::FUNCTION,
            FINAL,
            head.task_tag(),
            StatusNumber::Takes,
        );
        let function = head.flags() & 0x7f;
        let concerns_many = matches!(
            function,
            ABORT_TASK_SET | CLEAR_TASK_SET | UNIT_RESET | WARM_RESET | COLD_RESET
        );
        if concerns_many && self.waits_for_commands(channel, head) {
            return;
        }
        let answer = match (&self.normal, function) {
            (None, _) => Some(NOT_SUPPORTED),
            (Some(_), ABORT_TASK) => self.abort_task(channel, head, made),
            (Some(normal), ABORT_TASK_SET | CLEAR_TASK_SET | UNIT_RESET) => {
                let lun = head.lun();
                match lun.and_then(|lun| normal.luns.get(lun)) {
                    Some(nexus) => {
                        self.abort_all(lun, head.command_number());
                        self.run_functions(function, vec![nexus], (channel.clone(), made));
                        None
                    }
                    None => Some(NO_UNIT),
                }
            }
            (Some(normal), WARM_RESET | COLD_RESET) => {
                // Every unit of the session; other units of the target are not accessible to it.
                self.abort_all(None, head.command_number());
                self.run_functions(function, normal.luns.all(), (channel.clone(), made));
                None
            }
            (Some(_), REASSIGN) => Some(NO_REASSIGNMENT),
            _ => Some(NOT_SUPPORTED),
        };
        if let Some(answer) = answer {
            channel.output.push(made.byte(2, answer), Data::None);
        }
    }

    /// ABORT TASK: the response, or none if it is sent once the command has ended. A command of an
    /// active connection can only be aborted on it; one of a failed connection on any (11.5.1).
    fn abort_task(self: &Rc<Self>, channel: &Rc<Channel>, head: &Head, made: Made) -> Option<u8> {
        let tag = head.word_20();
        let done = made.byte(2, COMPLETE);
        let mut tasks = self.tasks.borrow_mut();
        let is_others = tasks
            .get_mut(tag)
            .is_some_and(|task| !Rc::ptr_eq(&task.channel, channel) && !task.channel.over.get());
        if is_others {
            return Some(REJECTED);
        }
        let aborted = tasks.abort(tag, Some((channel.clone(), done)));
        drop(tasks);
        match aborted {
            // The command may be in flight: then it will not be executed when it arrives (11.6.1).
            Aborted::NotThere => match self.plug(head.command_referred(), head.command_number()) {
                true => Some(COMPLETE),
                false => Some(NO_TASK),
            },
            Aborted::Later => None,
            Aborted::Now(task) => {
                if task.order == NO_TURN {
                    self.early.borrow_mut().give_up(task.number);
                }
                self.forget(&task);
                self.give_back(&task);
                self.begin_ready();
                Some(COMPLETE)
            }
        }
    }

    /// Drops commands before a function that are not running, and suppresses the responses of
    /// running ones.
    fn abort_all(self: &Rc<Self>, lun: Option<u16>, number: u32) {
        let tags = self.tasks.borrow_mut().before(lun, number);
        for tag in tags {
            let aborted = self.tasks.borrow_mut().abort(tag, None);
            if let Aborted::Now(task) = aborted {
                self.forget(&task);
                self.give_back(&task);
            }
        }
        self.begin_ready();
    }

    /// Responds when all nexuses have executed the function.
    fn run_functions(
        self: &Rc<Self>,
        function: u8,
        nexuses: Vec<Rc<Nexus>>,
        (channel, made): (Rc<Channel>, Made),
    ) {
        let session = self.clone();
        self.handle.spawn(async move {
            for nexus in nexuses {
                run(function, &nexus).await;
            }
            session.ended.notify();
            let pdu = Pdu {
                made: made.byte(2, COMPLETE),
                data: Data::None,
                held: 0,
                ends_command: false,
            };
            session.send_fenced(&channel, pdu);
        });
    }
}
