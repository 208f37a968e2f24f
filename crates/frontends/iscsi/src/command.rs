//! SCSI Command and Data-Out PDUs (RFC 7143, sections 11.3 and 11.7).

use crate::early::Request;
use crate::input::Input;
use crate::memory::Taken;
use crate::pdu::{Head, NO_TAG, reason};
use crate::serving::{Connection, violation};
use crate::session::{IMMEDIATE_MAX, Session};
use crate::tasks::{Receiving, State, Task, spare};
use scsi::memory_of;
use std::io::Result;
use std::rc::Rc;

/// Maximum data-out of one command, in bytes.
const DATA_OUT_MAX: u32 = 16 << 20;

const READS: u8 = 0x40;
const WRITES: u8 = 0x20;

impl Connection {
    /// SCSI Command.
    pub(super) async fn command(&self, head: &Head, input: &mut Input) -> Result<()> {
        let (len, tag) = (head.data_len(), head.task_tag());
        let (session, channel) = (&self.session, &self.channel);
        let agreed = &channel.agreed;
        let writes = head.flags() & WRITES != 0;
        let expected = head.word_20();
        let out = if writes { expected } else { 0 };
        let unsolicited = writes && !head.is_final();
        let takes = len <= out as usize
            && out <= DATA_OUT_MAX
            && (len == 0 || agreed.immediate_data && len <= agreed.first_burst_max as usize);
        // No memory for data that was not solicited yet: many commands may announce a lot.
        let room = match unsolicited && takes {
            true => out.min(agreed.first_burst_max) as usize,
            false => len,
        };
        let account = &session.window.account;
        let brought = Taken::take(&session.handle, account, room.max(len)).await?;
        // Overwritten completely before the command is executed.
        let mut data = spare(room.max(len));
        let whole = match input.data_at_hand(&mut data[..len], agreed.data_digest) {
            Some(whole) => whole,
            None => {
                let read = input.data_into(&mut data[..len], agreed.data_digest);
                self.patiently(read).await?
            }
        };
        if !whole {
            channel.reject(reason::DATA_DIGEST, head);
        }
        if !session.takes_number(head) {
            return Ok(());
        }
        let reads = head.flags() & READS != 0;
        let number = head.command_number();
        if unsolicited && agreed.initial_r2t {
            return Err(violation("unexpected unsolicited data"));
        }
        let unit = match session.unit(head) {
            None => Err(reason::NOT_SUPPORTED),
            Some(unit) => session.admits(head, takes && !(reads && writes), unit),
        };
        let unit = match unit {
            Ok(unit) => unit,
            Err(why) => {
                channel.reject(why, head);
                if !head.is_immediate() {
                    session.take(number, Request::Nothing);
                }
                return Ok(());
            }
        };
        let has_turn = head.is_immediate() || session.takes_turn(number, unit.memory);
        let attribute = head.flags() & 0x07;
        let has_all = whole && !unsolicited && len == out as usize;
        let state = match has_turn && has_all && session.may_begin_now(attribute) {
            true => session.begin_now(tag, (&unit, &head.cdb()), data),
            false => State::Receiving(Receiving {
                burst_end: data.len(),
                data,
                open: unsolicited,
                whole: out as usize,
                received: len,
                tag: NO_TAG,
                data_number: 0,
                r2t_number: 0,
                damaged: !whole,
            }),
        };
        let has_begun = matches!(state, State::Direct(_));
        let task = Task {
            id: 0,
            order: 0,
            channel: channel.clone(),
            number,
            attribute,
            immediate: head.is_immediate(),
            lun: unit.lun,
            lun_bytes: head.lun_bytes(),
            cdb: head.cdb(),
            expected,
            reads,
            generation: unit.generation,
            state,
            aborted: None,
            spared: false,
            held: unit.memory,
            _brought: brought,
            granted: 0,
        };
        {
            let mut tasks = session.tasks.borrow_mut();
            tasks.add(tag, task, has_turn);
            session.count_commands(&tasks);
        }
        if !has_turn {
            session.wait(number, Request::Command(tag));
            return Ok(());
        }
        if !has_begun {
            session.go_on(tag);
        }
        session.deliver();
        Ok(())
    }

    /// Data-Out.
    pub(super) async fn data_out(&self, head: &Head, input: &mut Input) -> Result<()> {
        let (session, channel) = (&self.session, &self.channel);
        let (len, tag) = (head.data_len(), head.task_tag());
        // Removed from the table while its data is read; only an abort may look for it meanwhile.
        let mut taken = {
            let mut tasks = session.tasks.borrow_mut();
            let task = tasks.get_mut(tag);
            if task
                .as_ref()
                .is_some_and(|task| !Rc::ptr_eq(&task.channel, channel))
            {
                return Err(violation("data for a command of another connection"));
            }
            match task.map(|task| (task.id, &mut task.state)) {
                Some((id, State::Receiving(data))) => {
                    Some((id, std::mem::take(&mut data.data), data.received))
                }
                _ => None,
            }
        };
        let Some((id, data, at)) = &mut taken else {
            // Harmless data of an aborted or unknown command.
            self.segment(head, input).await?;
            return Ok(());
        };
        let end = *at + len;
        self.check_data(head, end)?;
        let read = input.data_into(&mut data[*at..end], channel.agreed.data_digest);
        let whole = self.patiently(read).await?;
        if !whole {
            channel.reject(reason::DATA_DIGEST, head);
        }
        {
            let mut tasks = session.tasks.borrow_mut();
            // Another connection may have aborted it meanwhile, and reused its tag.
            let task = tasks.get_mut(tag).filter(|task| task.id == *id);
            let Some(State::Receiving(receiving)) = task.map(|task| &mut task.state) else {
                return Ok(());
            };
            receiving.data = std::mem::take(data);
            receiving.received = end;
            receiving.damaged |= !whole;
            receiving.data_number = receiving.data_number.wrapping_add(1);
            if !head.is_final() {
                return Ok(());
            }
            if receiving.tag == NO_TAG {
                receiving.burst_end = end;
                receiving.open = false;
            } else if end != receiving.burst_end {
                return Err(violation("less data than solicited"));
            }
        }
        session.go_on(tag);
        Ok(())
    }

    /// Verifies that a Data-Out is the expected one (11.7: tag, number, offset and length).
    fn check_data(&self, head: &Head, end: usize) -> Result<()> {
        let mut tasks = self.session.tasks.borrow_mut();
        let Some(State::Receiving(data)) =
            tasks.get_mut(head.task_tag()).map(|task| &mut task.state)
        else {
            return Err(violation("data for an unknown command"));
        };
        if head.data_number() != data.data_number {
            // A PDU was lost or is corrupt (7.9): the command fails.
            data.damaged = true;
        }
        let is_next = head.word_20() == data.tag
            && head.offset() as usize == data.received
            && end <= data.burst_end;
        if !is_next {
            drop(tasks);
            self.channel.reject(reason::PROTOCOL, head);
            return Err(violation("data out of sequence"));
        }
        Ok(())
    }
}

/// The destination of a command.
pub(super) struct For {
    pub lun: Option<u16>,
    /// Number of aborts so far.
    pub generation: u64,
    /// Memory for the data that it reads, in bytes.
    memory: u64,
}

impl Session {
    /// The unit of an acceptable command, or the reason for rejecting it. Immediate commands get
    /// their memory here, as they do not wait for a turn.
    fn admits(&self, head: &Head, keeps_rules: bool, unit: For) -> std::result::Result<For, u8> {
        let (tasks, tag) = (self.tasks.borrow(), head.task_tag());
        if !keeps_rules || tag == NO_TAG {
            return Err(reason::PROTOCOL);
        }
        if tasks.contains(tag) {
            return Err(reason::TASK_IN_PROGRESS);
        }
        let has_room = || tasks.immediate < IMMEDIATE_MAX && self.window.hold(unit.memory).is_ok();
        if head.is_immediate() && !has_room() {
            return Err(reason::IMMEDIATE);
        }
        Ok(unit)
    }

    /// The unit addressed by a command. None in a discovery session.
    fn unit(self: &Rc<Self>, head: &Head) -> Option<For> {
        let normal = self.normal.as_ref()?;
        self.refresh_units(normal);
        let lun = head.lun();
        let nexus = lun.and_then(|lun| normal.luns.get(lun));
        let size = nexus.as_ref().map_or(512, |nexus| nexus.unit().lba_size());
        Some(For {
            lun,
            generation: nexus.map_or(0, |nexus| nexus.generation()),
            memory: memory_of(&head.cdb(), size),
        })
    }

    /// A waiting command has its turn, and the memory that it needs.
    pub(super) fn give_turn(self: &Rc<Self>, tag: u32) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(task) = tasks.give_turn(tag) else {
            return;
        };
        let normal = self.normal.as_ref().zip(task.lun);
        let nexus = normal.and_then(|(normal, lun)| normal.luns.get(lun));
        task.generation = nexus.map_or(0, |nexus| nexus.generation());
        drop(tasks);
        self.go_on(tag);
    }
}
