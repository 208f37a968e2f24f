//! SCSI commands and their data (RFC 7143, sections 11.3, 11.4, 11.7 and 11.8).

use crate::input::Input;
use crate::output::{Data, Pdu};
use crate::pdu::{FINAL, Head, Made, NO_TAG, StatusNumber, reason, response};
use crate::session::{IMMEDIATE_MAX, READ_NS, Session, violation};
use crate::tasks::{Receiving, State, Task, spare};
use block::IoBuf;
use reactor::in_time;
use scsi::{Response, Sense, Status, memory_of};
use std::io::Result;
use std::rc::Rc;

/// Longest data-out of one command, in bytes.
const DATA_OUT_MAX: u32 = 16 << 20;
/// Data-out that commands may be granted at a time, and memory of what is read; one command always
/// goes on.
const GRANTED_MAX: u64 = 16 << 20;
const HELD_MAX: u64 = 16 << 20;

/// EXTENDED COPY and its like, whose refusals are logged: they may reach for units of others.
const THIRD_PARTY_COPY: u8 = 0x83;

const READS: u8 = 0x40;
const WRITES: u8 = 0x20;
const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;
const WITH_STATUS: u8 = 0x01;

/// The residual flag and count (11.4.5.1).
fn residual(expected: u32, length: u64) -> (u8, u32) {
    let expected = u64::from(expected);
    let count = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    match length {
        length if length > expected => (OVERFLOW, count(length - expected)),
        length if length < expected => (UNDERFLOW, count(expected - length)),
        _ => (0, 0),
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

impl Session {
    /// SCSI Command.
    pub(super) async fn command(self: &Rc<Self>, head: &Head, input: &mut Input) -> Result<()> {
        let (len, tag) = (head.data_len(), head.task_tag());
        let agreed = &self.parts.agreed;
        let writes = head.flags() & WRITES != 0;
        let expected = head.word_20();
        let out = if writes { expected } else { 0 };
        let unsolicited = writes && !head.is_final();
        let takes = len <= out as usize
            && out <= DATA_OUT_MAX
            && (len == 0 || agreed.immediate_data && len <= agreed.first_burst_max as usize);
        // What is not asked for yet gets no memory: many commands may announce much.
        let room = match unsolicited && takes {
            true => out.min(agreed.first_burst_max) as usize,
            false => len,
        };
        // All of it is overwritten before the command is carried out.
        let mut data = spare(room.max(len));
        let read = input.data_into(&mut data[..len], agreed.data_digest);
        let whole = in_time(&self.parts.handle, READ_NS, read).await?;
        if !whole {
            self.reject(reason::DATA_DIGEST, head);
        }
        if !self.takes_number(head) {
            return Ok(());
        }
        let reads = head.flags() & READS != 0;
        if let Some(why) = self.refusal(head, takes, reads && writes) {
            self.reject(why, head);
            return Ok(());
        }
        if unsolicited && agreed.initial_r2t {
            return Err(violation("data that was not asked for"));
        }
        let Some((lun, generation)) = self.unit(head) else {
            self.reject(reason::NOT_SUPPORTED, head);
            return Ok(());
        };
        let cdb = head.cdb();
        let held = self.wait_for_memory(&cdb, lun).await;
        let receiving = Receiving {
            burst_end: data.len(),
            data,
            whole: out as usize,
            received: len,
            tag: NO_TAG,
            data_number: 0,
            r2t_number: 0,
            damaged: !whole,
        };
        let task = Task {
            order: 0,
            attribute: head.flags() & 0x07,
            immediate: head.is_immediate(),
            lun,
            lun_bytes: head.lun_bytes(),
            cdb,
            expected,
            reads,
            generation,
            state: State::Receiving(receiving),
            aborted: None,
            held,
            granted: 0,
        };
        if !task.immediate {
            let output = &self.parts.output;
            output.in_use.set(output.in_use.get() + 1);
        }
        {
            let mut tasks = self.tasks.borrow_mut();
            tasks.add(tag, task);
            self.count_commands(&tasks);
        }
        if !unsolicited {
            self.go_on(tag);
        }
        Ok(())
    }

    /// Why a command is not taken at all.
    fn refusal(&self, head: &Head, takes: bool, both_ways: bool) -> Option<u8> {
        let tasks = self.tasks.borrow();
        if both_ways {
            return Some(reason::NOT_SUPPORTED);
        }
        if !takes || head.task_tag() == NO_TAG {
            return Some(reason::PROTOCOL);
        }
        if tasks.contains(head.task_tag()) {
            return Some(reason::TASK_IN_PROGRESS);
        }
        if head.is_immediate() && tasks.immediate >= IMMEDIATE_MAX {
            return Some(reason::IMMEDIATE);
        }
        None
    }

    /// The unit that a command is for, with the number of aborts so far. None in a discovery session.
    fn unit(&self, head: &Head) -> Option<(Option<u16>, u64)> {
        let normal = self.parts.normal.as_ref()?;
        self.refresh_units(normal);
        let lun = head.lun();
        let nexus = lun.and_then(|lun| normal.luns.get(lun));
        Some((lun, nexus.map_or(0, |nexus| nexus.generation())))
    }

    /// Waits until there is memory for what a command reads, and takes it.
    async fn wait_for_memory(&self, cdb: &[u8; 16], lun: Option<u16>) -> u64 {
        let normal = self.parts.normal.as_ref();
        let nexus = normal
            .zip(lun)
            .and_then(|(normal, lun)| normal.luns.get(lun));
        let size = nexus.map_or(512, |nexus| nexus.unit().lba_size());
        let needs = memory_of(cdb, size);
        let output = &self.parts.output;
        loop {
            let room = output.room.wait();
            let held = output.held.get();
            if held == 0 || held + needs <= HELD_MAX {
                output.held.set(held + needs);
                return needs;
            }
            room.await;
        }
    }

    /// Data-Out.
    pub(super) async fn data_out(self: &Rc<Self>, head: &Head, input: &mut Input) -> Result<()> {
        let (len, tag) = (head.data_len(), head.task_tag());
        // Out of the table while it is read into; nobody else looks for it meanwhile but an abort.
        let mut taken = {
            let mut tasks = self.tasks.borrow_mut();
            match tasks.get_mut(tag).map(|task| &mut task.state) {
                Some(State::Receiving(data)) => {
                    Some((std::mem::take(&mut data.data), data.received))
                }
                _ => None,
            }
        };
        let Some((data, at)) = &mut taken else {
            // Of a command that was aborted, or was never there: no harm.
            self.segment(head, input).await?;
            return Ok(());
        };
        let end = *at + len;
        self.check_data(head, end)?;
        let read = input.data_into(&mut data[*at..end], self.parts.agreed.data_digest);
        let whole = in_time(&self.parts.handle, READ_NS, read).await?;
        if !whole {
            self.reject(reason::DATA_DIGEST, head);
        }
        {
            let mut tasks = self.tasks.borrow_mut();
            let Some(State::Receiving(receiving)) = tasks.get_mut(tag).map(|task| &mut task.state)
            else {
                return Ok(());
            };
            receiving.data = taken.map(|taken| taken.0).unwrap_or_default();
            receiving.received = end;
            receiving.damaged |= !whole;
            receiving.data_number = receiving.data_number.wrapping_add(1);
            if !head.is_final() {
                return Ok(());
            }
            if receiving.tag == NO_TAG {
                receiving.burst_end = end;
            } else if end != receiving.burst_end {
                return Err(violation("less data than was asked for"));
            }
        }
        self.go_on(tag);
        Ok(())
    }

    /// Whether a Data-Out is the one that was to come next (11.7: tag, number, offset and length).
    fn check_data(&self, head: &Head, end: usize) -> Result<()> {
        let mut tasks = self.tasks.borrow_mut();
        let Some(State::Receiving(data)) =
            tasks.get_mut(head.task_tag()).map(|task| &mut task.state)
        else {
            return Err(violation("data of no command"));
        };
        if head.data_number() != data.data_number {
            // One was lost, or this is not the one that it seems to be (7.9): the command fails.
            data.damaged = true;
        }
        let is_next = head.word_20() == data.tag
            && head.offset() as usize == data.received
            && end <= data.burst_end;
        if !is_next {
            drop(tasks);
            self.reject(reason::PROTOCOL, head);
            return Err(violation("data that was not to come now"));
        }
        Ok(())
    }

    /// Goes on with a command whose burst is complete: asks for more, or carries it out.
    pub(super) fn go_on(self: &Rc<Self>, tag: u32) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(task) = tasks.get_mut(tag) else {
            return;
        };
        let State::Receiving(receiving) = &mut task.state else {
            return;
        };
        if receiving.received == receiving.whole {
            let data = std::mem::take(&mut receiving.data);
            if receiving.damaged {
                let order = task.order;
                drop(tasks);
                self.answer((tag, order), Some(failed(Sense::PROTOCOL_CRC_ERROR)));
                return;
            }
            if let Some(normal) = &self.parts.normal {
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
        let len = left.min(self.parts.agreed.burst_max as usize);
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
        self.parts.output.push(made, Data::None);
    }

    /// Carries a command out when it is its turn.
    pub(super) fn begin(self: &Rc<Self>, tag: u32) {
        let begun = self.tasks.borrow_mut().begin(tag);
        let Some(begun) = begun else {
            return;
        };
        let data = match begun.data.is_empty() {
            true => IoBuf::empty(),
            false => IoBuf::from_bytes(begun.data),
        };
        let (order, lun, cdb, generation) = (begun.order, begun.lun, begun.cdb, begun.generation);
        let session = self.clone();
        self.parts.handle.start(async move {
            let response = match &session.parts.normal {
                Some(normal) => normal.luns.execute(lun, &cdb, data, generation).await,
                None => None,
            };
            session.answer((tag, order), response);
        });
    }

    /// Ends a command: answers it unless it was aborted, and lets others go on.
    fn answer(self: &Rc<Self>, (tag, order): (u32, u64), response: Option<Response>) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(mut task) = tasks.remove_ended(tag, order) else {
            return;
        };
        self.count_commands(&tasks);
        let had_ordered = tasks.has_ordered() || task.attribute == crate::tasks::ORDERED;
        drop(tasks);
        let aborted = task.aborted.take();
        match response {
            Some(response) if aborted.is_none() && !self.over.get() => {
                self.respond(tag, &task, response)
            }
            _ => self.forget(&task),
        }
        for made in aborted.into_iter().flatten() {
            self.parts.output.push(made, Data::None);
        }
        self.give_back(&task);
        if had_ordered {
            self.begin_ready();
        }
        self.ended.notify();
    }

    /// Begins what has waited for its turn.
    pub(super) fn begin_ready(self: &Rc<Self>) {
        let ready = self.tasks.borrow().ready();
        for tag in ready {
            self.begin(tag);
        }
    }

    /// Gives the place of a command back that is not answered.
    pub(super) fn forget(&self, task: &Task) {
        let output = &self.parts.output;
        output.held.set(output.held.get() - task.held);
        if !task.immediate {
            output.in_use.set(output.in_use.get() - 1);
        }
        output.room.notify();
    }

    /// Gives the memory back that a command was granted for its data, to those that wait for some.
    pub(super) fn give_back(self: &Rc<Self>, task: &Task) {
        if task.granted == 0 {
            return;
        }
        self.granted.set(self.granted.get() - task.granted);
        let waiting = self.tasks.borrow().ungranted();
        for tag in waiting {
            self.go_on(tag);
        }
    }

    fn respond(&self, tag: u32, task: &Task, response: Response) {
        let (flag, count) = residual(task.expected, response.length);
        let ends_command = !task.immediate;
        let data_len = response.data.len().min(task.expected as usize);
        let status = response.status.code();
        if task.cdb[0] == THIRD_PARTY_COPY && response.status != Status::Good {
            self.note(format_args!("copy refused or failed: {:02x?}", task.cdb));
        }
        if task.reads && data_len > 0 && response.status == Status::Good {
            if let Some(normal) = &self.parts.normal {
                normal.place.account.add_read(data_len as u64);
            }
            let end = (flag, count, status, ends_command);
            self.data_in(tag, task, Rc::new(response.data), data_len, end);
            return;
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
        self.parts.output.push_pdu(Pdu {
            made,
            data,
            held: task.held,
            ends_command,
        });
    }

    /// Data-In PDUs, the last of them with the status (11.7.3).
    fn data_in(
        &self,
        tag: u32,
        task: &Task,
        buf: Rc<IoBuf>,
        len: usize,
        (flag, count, status, ends_command): (u8, u32, u8, bool),
    ) {
        let segment = self.parts.agreed.segment_max as usize;
        let burst = self.parts.agreed.burst_max as usize;
        let (mut at, mut number) = (0, 0);
        while at < len {
            let burst_end = (at / burst + 1) * burst;
            let end = len.min(at + segment).min(burst_end);
            let is_last = end == len;
            let mut flags = if end == burst_end || is_last {
                FINAL
            } else {
                0
            };
            if is_last {
                flags |= flag | WITH_STATUS;
            }
            let kind = match is_last {
                true => StatusNumber::Takes,
                false => StatusNumber::Without,
            };
            let mut made = Made::new(response::DATA_IN, flags, tag, kind)
                .word(20, NO_TAG)
                .word(36, number)
                .word(40, at as u32);
            if is_last {
                made = made.byte(3, status).word(44, count);
            }
            self.parts.output.push_pdu(Pdu {
                made,
                data: Data::Part(buf.clone(), at..end),
                held: if is_last { task.held } else { 0 },
                ends_command: is_last && ends_command,
            });
            at = end;
            number += 1;
        }
    }
}
