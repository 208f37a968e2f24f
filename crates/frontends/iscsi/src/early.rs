//! Delivers requests in the order of their command numbers (CmdSN) across all connections of a
//! session (RFC 7143, section 4.2.2.1): early ones wait for those before them, at most a window of
//! them.

use crate::channel::Channel;
use crate::memory::Brought;
use crate::pdu::{Head, is_before, reason};
use crate::session::{IMMEDIATE_MAX, Session};
use crate::tasks::NO_TURN;
use crate::window::Short;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum bytes of waiting text and NOP requests.
const WAITING_MAX: usize = 1 << 20;

/// A numbered request.
pub(super) enum Request {
    /// A SCSI command, with its tag in the table of tasks.
    Command(u32),
    /// A request other than a command.
    Other(Rc<Channel>, Head, Brought),
    /// An aborted or rejected request, which only consumes its number.
    Nothing,
}

/// Waiting requests.
#[derive(Default)]
pub(super) struct Early {
    requests: HashMap<u32, Request>,
    /// Bytes of their data, except for commands.
    bytes: usize,
    /// Immediate task management functions that affect all commands before a number.
    functions: Vec<(Rc<Channel>, Head)>,
}

impl Early {
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.functions.is_empty()
    }

    fn take(&mut self, number: u32) -> Option<Request> {
        let request = self.requests.remove(&number)?;
        if let Request::Other(_, _, data) = &request {
            self.bytes -= data.len();
        }
        Some(request)
    }

    fn put(&mut self, number: u32, request: Request) {
        if let Request::Other(_, _, data) = &request {
            self.bytes += data.len();
        }
        self.requests.insert(number, request);
    }

    /// Replaces an aborted command.
    pub(super) fn give_up(&mut self, number: u32) {
        if let Some(waiting @ Request::Command(_)) = self.requests.get_mut(&number) {
            *waiting = Request::Nothing;
        }
    }

    fn drop_of(&mut self, channel: &Rc<Channel>) {
        let bytes = &mut self.bytes;
        self.requests.retain(|_, request| match request {
            Request::Other(own, _, data) if Rc::ptr_eq(own, channel) => {
                *bytes -= data.len();
                false
            }
            _ => true,
        });
        self.functions.retain(|(own, _)| !Rc::ptr_eq(own, channel));
    }

    /// The first function whose number is due.
    fn next_function(&mut self, next: u32) -> Option<(Rc<Channel>, Head)> {
        let functions = self.functions.iter();
        let mut found = functions.map(|(_, head)| !is_before(next, head.command_number()));
        let at = found.position(|has_come| has_come)?;
        Some(self.functions.remove(at))
    }
}

impl Session {
    /// Whether the number of a request is acceptable. Immediate requests have none; requests
    /// outside of the window and duplicates are ignored.
    pub(super) fn takes_number(&self, head: &Head) -> bool {
        let number = head.command_number();
        head.is_immediate()
            || self.window.contains(number) && !self.early.borrow().requests.contains_key(&number)
    }

    /// Whether it is the turn of an acceptable command ([`Session::takes_number`]), which then gets
    /// its memory and window slot.
    pub(super) fn takes_turn(self: &Rc<Self>, number: u32, memory: u64) -> bool {
        let has = number == self.window.next() && self.hold(memory);
        if has {
            self.window.advance();
            self.window.begin_command();
        }
        has
    }

    /// Reserves memory for a command; if the budgets are exhausted it returns false, and the
    /// command is retried when memory is available.
    fn hold(self: &Rc<Self>, memory: u64) -> bool {
        let held = self.window.hold(memory);
        if held == Err(Short::Others) {
            self.await_memory(memory);
        }
        held.is_ok()
    }

    /// Queues a request until its turn.
    pub(super) fn wait(&self, number: u32, request: Request) {
        self.early.borrow_mut().put(number, request);
    }

    /// Executes a request other than a command in its turn.
    pub(super) fn take(self: &Rc<Self>, number: u32, request: Request) {
        if number != self.window.next() {
            return self.wait(number, request);
        }
        self.window.advance();
        self.carry_out(request);
        self.deliver();
    }

    /// The same for requests without unit data; immediate ones are executed now.
    pub(super) fn take_other(self: &Rc<Self>, channel: &Rc<Channel>, head: &Head, data: Brought) {
        if head.is_immediate() {
            self.other(channel, head, data);
            return self.deliver();
        }
        let number = head.command_number();
        let waits = number != self.window.next();
        if waits && self.early.borrow().bytes + data.len() > WAITING_MAX {
            // Ignored as if it had been lost: an initiator that fills the window with such requests
            // must retry them.
            return;
        }
        self.take(number, Request::Other(channel.clone(), *head, data));
    }

    /// Executes waiting requests whose turn has come.
    pub(super) fn deliver(self: &Rc<Self>) {
        loop {
            if self.early.borrow().is_empty() {
                return;
            }
            let next = self.window.next();
            let function = self.early.borrow_mut().next_function(next);
            if let Some((channel, head)) = function {
                self.function(&channel, &head);
                continue;
            }
            let Some(request) = self.early.borrow_mut().take(next) else {
                return;
            };
            if !self.has_memory(&request) {
                return self.early.borrow_mut().put(next, request);
            }
            self.window.advance();
            self.carry_out(request);
        }
    }

    /// Reserves the memory of a command; false if the budgets are exhausted.
    fn has_memory(self: &Rc<Self>, request: &Request) -> bool {
        let Request::Command(tag) = request else {
            return true;
        };
        let mut tasks = self.tasks.borrow_mut();
        let memory = tasks.get_mut(*tag).map(|task| task.held);
        drop(tasks);
        memory.is_none_or(|memory| self.hold(memory))
    }

    fn carry_out(self: &Rc<Self>, request: Request) {
        match request {
            Request::Command(tag) => {
                self.window.begin_command();
                self.give_turn(tag);
            }
            Request::Other(channel, head, data) => self.other(&channel, &head, data),
            Request::Nothing => {}
        }
    }

    /// Whether an immediate function must wait for earlier-numbered commands still in flight on
    /// other connections (RFC 7143, section 4.2.3.3); then it is queued.
    pub(super) fn waits_for_commands(&self, channel: &Rc<Channel>, head: &Head) -> bool {
        let (number, next) = (head.command_number(), self.window.next());
        let last = self.window.last().wrapping_add(1);
        if !head.is_immediate() || !is_before(next, number) || is_before(last, number) {
            return false;
        }
        let mut early = self.early.borrow_mut();
        if early.functions.len() >= IMMEDIATE_MAX {
            channel.reject(reason::IMMEDIATE, head);
        } else {
            early.functions.push((channel.clone(), *head));
        }
        true
    }

    /// Treats the command with this number as received (RFC 7143, section 11.6.1). False if the
    /// number is not acceptable, or not before the function's own.
    pub(super) fn plug(self: &Rc<Self>, number: u32, function: u32) -> bool {
        let may = self.window.contains(number) && is_before(number, function);
        if may && !self.early.borrow().requests.contains_key(&number) {
            self.take(number, Request::Nothing);
        }
        may
    }

    /// Drops waiting requests of a connection that has ended, as if they were never received: they
    /// were not acknowledged, so the initiator resends them on another connection.
    pub(super) fn drop_early(&self, channel: &Rc<Channel>) {
        let mut early = self.early.borrow_mut();
        early.drop_of(channel);
        let mut tasks = self.tasks.borrow_mut();
        for tag in tasks.of(channel) {
            let waits = tasks.get_mut(tag).filter(|task| task.order == NO_TURN);
            if let Some(number) = waits.map(|task| task.number) {
                tasks.remove(tag);
                early.requests.remove(&number);
            }
        }
    }
}
