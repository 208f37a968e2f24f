//! SCSI commands from their turn on: data transfers, execution and responses (RFC 7143, sections
//! 11.4, 11.7 and 11.8).

use crate::output::{Data, Pdu};
use crate::pdu::{FINAL, Made, StatusNumber, response};
use crate::session::Session;
use crate::tasks::{NO_TURN, State, Task};
use block::IoBuf;
use scsi::{Response, Sense, Status};
use std::rc::Rc;

/// Maximum bytes of solicited data-out in flight; one command can always proceed.
const GRANTED_MAX: u64 = 16 << 20;

/// EXTENDED COPY and related commands, whose refusals are logged since they may target units of
/// other hosts.
const THIRD_PARTY_COPY: u8 = 0x83;
/// PERSISTENT RESERVE OUT, and its service action PREEMPT AND ABORT.
const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
const PREEMPT_AND_ABORT: u8 = 0x05;
const UNIT_ATTENTION: u8 = 0x06;

const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;
const WITH_STATUS: u8 = 0x01;

/// Residual flag and count (11.4.5.1).
fn residual(expected: u32, length: u64) -> (u8, u32) {
    let expected = u64::from(expected);
    let count = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    match length {
        length if length > expected => (OVERFLOW, count(length - expected)),
        length if length < expected => (UNDERFLOW, count(expected - length)),
        _ => (0, 0),
    }
}

/// Response that makes the initiator retry a command aborted by an earlier function.
fn again_later() -> Response {
    Response {
        status: Status::TaskSetFull,
        sense: None,
        data: IoBuf::empty(),
        length: 0,
    }
}

fn failed(sense: Sense) -> Response {
    Response {
        status: Status::CheckCondition,
        sense: Some(sense.encode(false)),
        data: IoBuf::empty(),
        length: 0,
    }
}

/// Whether sense data in either format (SPC-4 4.5) is a unit attention.
fn is_attention(sense: &[u8]) -> bool {
    let key = match sense {
        [0x72 | 0x73, key, ..] | [_, _, key, ..] => key & 0x0f,
        _ => 0,
    };
    key == UNIT_ATTENTION
}

/// Whether no other response may overtake this one (RFC 7143, section 4.2.2.3).
fn is_fenced(task: &Task, response: &Response) -> bool {
    let preempts = task.cdb[0] == PERSISTENT_RESERVE_OUT && task.cdb[1] & 0x1f == PREEMPT_AND_ABORT;
    preempts || response.sense.as_deref().is_some_and(is_attention)
}

/// Final state of a command: residual flag and count, and status.
#[derive(Clone, Copy)]
struct Ending {
    flag: u8,
    residual: u32,
    status: u8,
}

impl Session {
    /// Continues a command whose burst is complete: requests more data, or executes it.
    pub(super) fn go_on(self: &Rc<Self>, tag: u32) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(task) = tasks.get_mut(tag) else {
            return;
        };
        let receiving = match &mut task.state {
            State::Receiving(receiving) => receiving,
            State::Waiting(_) => {
                drop(tasks);
                return self.begin(tag);
            }
            State::Running(_) | State::Direct(_) => return,
        };
        if receiving.open || task.order == NO_TURN {
            return;
        }
        if receiving.received == receiving.whole {
            let data = std::mem::take(&mut receiving.data);
            if receiving.damaged {
                let id = task.id;
                drop(tasks);
                self.answer((tag, id), Some(failed(Sense::PROTOCOL_CRC_ERROR)));
                return;
            }
            if let Some(normal) = &self.normal {
                normal.place.account.add_written(data.len() as u64);
            }
            task.state = State::Waiting(data);
            drop(tasks);
            self.begin(tag);
            return;
        }
        let wants = receiving.whole as u64;
        if task.granted == 0 {
            let granted = self.granted.get();
            if granted > 0 && granted + wants > GRANTED_MAX {
                return;
            }
            if !self.window.lend(wants) {
                drop(tasks);
                return self.await_memory(wants);
            }
            task.granted = wants;
            receiving.grow();
            self.granted.set(granted + wants);
        }
        drop(tasks);
        self.ask(tag);
    }

    /// Sends an R2T for the next burst.
    fn ask(&self, tag: u32) {
        let mut tasks = self.tasks.borrow_mut();
        let transfer_tag = tasks.next_tag();
        let Some(task) = tasks.get_mut(tag) else {
            return;
        };
        let State::Receiving(receiving) = &mut task.state else {
            return;
        };
        let left = receiving.whole - receiving.received;
        let len = left.min(task.channel.agreed.burst_max as usize);
        receiving.tag = transfer_tag;
        receiving.burst_end = receiving.received + len;
        receiving.data_number = 0;
        let made = Made::new(response::R2T, FINAL, tag, StatusNumber::Shows)
            .lun(task.lun_bytes)
            .word(20, transfer_tag)
            .word(36, receiving.r2t_number)
            .word(40, receiving.received as u32)
            .word(44, len as u32);
        receiving.r2t_number += 1;
        task.channel.output.push(made, Data::None);
    }

    /// Executes a command if it is its turn.
    pub(super) fn begin(self: &Rc<Self>, tag: u32) {
        let begun = self.tasks.borrow_mut().begin(tag);
        let Some(begun) = begun else {
            return;
        };
        let data = match begun.data.is_empty() {
            true => IoBuf::empty(),
            false => IoBuf::from_bytes(begun.data),
        };
        let (id, lun, cdb, generation) = (begun.id, begun.lun, begun.cdb, begun.generation);
        let stop = begun.stop;
        let session = self.clone();
        self.handle.start(async move {
            let response = match &session.normal {
                Some(normal) => {
                    let luns = &normal.luns;
                    luns.execute(lun, &cdb, data, generation, &stop).await
                }
                None => None,
            };
            session.answer((tag, id), response);
        });
    }

    /// Completes a command: responds unless it was aborted, and lets others proceed.
    fn answer(self: &Rc<Self>, (tag, id): (u32, u64), response: Option<Response>) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(task) = tasks.remove_ended(tag, id) else {
            return;
        };
        self.count_commands(&tasks);
        drop(tasks);
        self.end(tag, task, response);
    }

    /// The same after its removal from the table.
    pub(super) fn end(self: &Rc<Self>, tag: u32, mut task: Task, response: Option<Response>) {
        let had_ordered =
            self.tasks.borrow().has_ordered() || task.attribute == crate::tasks::ORDERED;
        let aborted = task.aborted.take();
        match response {
            _ if aborted.is_some() || task.channel.over.get() => self.forget(&task),
            Some(response) => self.respond(tag, &task, response),
            None if task.spared => self.respond(tag, &task, again_later()),
            None => self.forget(&task),
        }
        for (channel, made) in aborted.into_iter().flatten() {
            channel.output.push(made, Data::None);
        }
        self.give_back(&task);
        if had_ordered {
            self.begin_ready();
        }
        self.deliver();
        self.ended.notify();
    }

    /// Starts commands that were waiting for their turn.
    pub(super) fn begin_ready(self: &Rc<Self>) {
        let ready = self.tasks.borrow().ready();
        for tag in ready {
            self.begin(tag);
        }
    }

    /// Releases the window slot and memory of a command without a response.
    pub(super) fn forget(&self, task: &Task) {
        if task.order == NO_TURN {
            return;
        }
        self.window.free(task.held);
        if !task.immediate {
            self.window.end_command();
        }
    }

    /// Releases the memory granted for a command's data to waiting commands.
    pub(super) fn give_back(self: &Rc<Self>, task: &Task) {
        if task.granted == 0 {
            return;
        }
        self.granted.set(self.granted.get() - task.granted);
        self.window.account.give(task.granted as usize);
        self.grant();
    }

    /// Solicits data for commands that were waiting for memory.
    pub(super) fn grant(self: &Rc<Self>) {
        let waiting = self.tasks.borrow().ungranted();
        for tag in waiting {
            self.go_on(tag);
        }
    }

    fn respond(&self, tag: u32, task: &Task, response: Response) {
        let fenced = is_fenced(task, &response);
        let (flag, count) = residual(task.expected, response.length);
        let ends_command = !task.immediate;
        let data_len = response.data.len().min(task.expected as usize);
        let status = response.status.code();
        if task.cdb[0] == THIRD_PARTY_COPY && response.status != Status::Good {
            let channel = &task.channel;
            channel.note(format_args!(
                "third-party copy refused or failed: {:02x?}",
                task.cdb
            ));
        }
        if task.reads && data_len > 0 && response.status == Status::Good {
            if let Some(normal) = &self.normal {
                normal.place.account.add_read(data_len as u64);
            }
            let end = Ending {
                flag,
                residual: count,
                status,
            };
            return self.data_in(tag, task, response.data, data_len, end);
        }
        let made = Made::new(
            crate::pdu::response::COMMAND,
            FINAL | flag,
            tag,
            StatusNumber::Takes,
        )
        .byte(3, status)
        .word(44, count);
        let data = match response.sense {
            Some(sense) => {
                let mut data = (sense.len() as u16).to_be_bytes().to_vec();
                data.extend(sense);
                Data::Own(data)
            }
            None => Data::None,
        };
        let pdu = Pdu {
            made,
            data,
            held: task.held,
            ends_command,
        };
        match fenced {
            true => self.send_fenced(&task.channel, pdu),
            false => self.send(&task.channel, pdu),
        }
    }

    /// Sends Data-In PDUs, the last one with the status (11.7.3).
    fn data_in(&self, tag: u32, task: &Task, buf: IoBuf, len: usize, end: Ending) {
        let agreed = &task.channel.agreed;
        let (segment, burst) = (agreed.segment_max as usize, agreed.burst_max as usize);
        if len == buf.len() && len <= segment.min(burst) {
            // A single PDU owns the data and needs no reference count.
            let data = Data::Whole(buf.into_bytes().unwrap_or_default());
            return self.data_in_part(tag, task, data, (0, 0, FINAL), Some(end));
        }
        let buf = Rc::new(buf);
        let (mut at, mut number) = (0, 0);
        while at < len {
            let burst_end = (at / burst + 1) * burst;
            let to = len.min(at + segment).min(burst_end);
            let is_last = to == len;
            let flags = if to == burst_end || is_last { FINAL } else { 0 };
            let data = Data::Part(buf.clone(), at..to);
            let part = (at as u32, number, flags);
            self.data_in_part(tag, task, data, part, is_last.then_some(end));
            at = to;
            number += 1;
        }
    }

    /// Sends one Data-In PDU: offset, number and flags; with the final state if it is the last one.
    fn data_in_part(
        &self,
        tag: u32,
        task: &Task,
        data: Data,
        (at, number, flags): (u32, u32, u8),
        end: Option<Ending>,
    ) {
        let flags = end.map_or(flags, |end| flags | end.flag | WITH_STATUS);
        let last = end.map(|end| (end.status, end.residual));
        let made = Made::data_in((flags, tag), (number, at), last);
        let pdu = Pdu {
            made,
            data,
            held: if end.is_some() { task.held } else { 0 },
            ends_command: end.is_some() && !task.immediate,
        };
        self.send(&task.channel, pdu);
    }
}
