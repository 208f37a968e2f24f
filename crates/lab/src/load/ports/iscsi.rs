//! A session with an iSCSI target, with many commands outstanding.

use super::memory::Pages;
use crate::iscsi::protocol::{self as p, Head};
use crate::iscsi::{Initiator, Lun, Opened};
use crate::load::port::{Port, Request};
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};

/// Bytes that are read with one call at most.
const CHUNK_MAX: usize = 1 << 20;

/// A PDU whose data are not all there.
#[derive(Clone, Copy)]
struct Half {
    head: Head,
    /// Bytes of data that came.
    got: usize,
    /// Bytes of data, and with what follows to a multiple of four.
    len: usize,
    padded: usize,
}

/// A session.
pub struct IscsiPort {
    session: Opened,
    /// Bytes of a block.
    block: u32,
    slot_bytes: usize,
    data: Pages,
    /// Whether data that are read are examined.
    keep: bool,
    /// By slot.
    requests: Vec<Request>,
    /// Slots whose commands the target's window has no place for.
    waiting: VecDeque<u16>,
    /// Data to send, and the sent part.
    outgoing: Vec<u8>,
    sent: usize,
    /// Received data, its processed part, and its length.
    incoming: Vec<u8>,
    seen: usize,
    filled: usize,
    half: Option<Half>,
}

fn wrong(text: String) -> Error {
    Error::new(ErrorKind::InvalidData, text)
}

impl IscsiPort {
    /// Logs in; returns the session and the unit's size in bytes. `keep`: data that are read can be fetched.
    ///
    /// # Errors
    /// When there is no such unit.
    pub fn connect(lun: &Lun, slots: u16, slot_bytes: usize, keep: bool) -> Result<(Self, u64)> {
        let mut session = Opened::open(lun, &Initiator::default())?;
        let (blocks, block) = session.capacity()?;
        session.wire.stream.set_nonblocking(true)?;
        let slots = usize::from(slots);
        let all = slots * (slot_bytes + p::HEAD_LEN);
        let port = Self {
            block,
            slot_bytes,
            data: Pages::new(slots * slot_bytes),
            keep,
            requests: vec![Request::default(); slots],
            waiting: VecDeque::with_capacity(slots),
            // Data that are requested come with a header for each segment.
            outgoing: Vec::with_capacity(2 * all),
            sent: 0,
            incoming: vec![0; all.clamp(4 * p::HEAD_LEN, CHUNK_MAX)],
            seen: 0,
            filled: 0,
            half: None,
            session,
        };
        Ok((port, blocks * u64::from(block)))
    }

    /// Puts a header and a part of a slot's data behind what is to be sent.
    fn push(&mut self, head: Head, slot: u16, from: usize, len: usize) {
        let padded = len.next_multiple_of(4);
        if self.outgoing.len() + p::HEAD_LEN + padded > self.outgoing.capacity() {
            // What was sent makes room, so that nothing grows.
            self.outgoing.drain(..self.sent);
            self.sent = 0;
        }
        self.outgoing.extend_from_slice(&head.data_len(len).0);
        let at = self.outgoing.len();
        self.outgoing.resize(at + padded, 0);
        let from = usize::from(slot) * self.slot_bytes + from;
        self.data.fetch(from, &mut self.outgoing[at..at + len]);
    }

    /// Sends a slot's command, with as much immediate data as permitted.
    fn command(&mut self, slot: u16) {
        let request = self.requests[usize::from(slot)];
        let block = u64::from(self.block);
        let cdb = p::transfer(
            request.write,
            request.offset / block,
            request.length / self.block,
        );
        let head = p::command(
            slot.into(),
            self.session.lun,
            Some(request.write),
            request.length,
            &cdb,
        );
        let head = self.session.numbers.stamp(head);
        let at_once = match request.write {
            true => self.session.immediate_max.min(request.length as usize),
            false => 0,
        };
        self.push(head, slot, 0, at_once);
    }

    fn slot(&self, head: &Head) -> Result<u16> {
        match head.tag() {
            tag if (tag as usize) < self.requests.len() => Ok(tag as u16),
            tag => Err(wrong(format!(
                "an answer to command {tag:#x}, which there was not"
            ))),
        }
    }

    /// Sends what the target asks for (RFC 7143, section 11.8).
    fn data_out(&mut self, head: &Head) -> Result<()> {
        let slot = self.slot(head)?;
        let length = self.requests[usize::from(slot)].length as usize;
        let (mut at, wanted) = (head.get(40) as usize, head.get(44) as usize);
        let end = at + wanted;
        if end > length || wanted == 0 {
            return Err(wrong(format!("{wanted} bytes at {at} are asked for")));
        }
        let mut number = 0;
        while at < end {
            let part = (end - at).min(self.session.segment_max);
            let last = if at + part == end { p::FINAL } else { 0 };
            let out = Head::new(p::DATA_OUT, last, slot.into())
                .bytes(8, &head.0[8..16])
                .word(20, head.get(20))
                .word(28, self.session.numbers.status)
                .word(36, number)
                .word(40, at as u32);
            self.push(out, slot, at, part);
            at += part;
            number += 1;
        }
        Ok(())
    }

    /// Says that we are there, when the target wants to know (section 11.19).
    fn pong(&mut self, head: &Head) {
        if head.get(20) != p::NO_TAG {
            let pong = Head::new(p::NOP_OUT | p::IMMEDIATE, p::FINAL, p::NO_TAG)
                .bytes(8, &head.0[8..16])
                .word(20, head.get(20))
                .word(24, self.session.numbers.command)
                .word(28, self.session.numbers.status);
            self.push(pong, 0, 0, 0);
        }
    }

    /// Deals with a PDU that is whole; the slot that it answers.
    fn whole(&mut self, head: &Head) -> Result<Option<u16>> {
        self.session.numbers.note(head);
        match head.opcode() {
            p::DATA_IN | p::RESPONSE => {}
            p::R2T => return self.data_out(head).map(|()| None),
            p::NOP_IN => {
                self.pong(head);
                return Ok(None);
            }
            other => return Err(wrong(format!("the target sent a PDU of kind {other:#04x}"))),
        }
        let slot = self.slot(head)?;
        match head.status() {
            None => Ok(None),
            // GOOD, and the target executed it.
            Some(0) if head.opcode() == p::DATA_IN || head.0[2] == 0 => Ok(Some(slot)),
            Some(status) => Err(wrong(format!(
                "a command was answered with status {status:#04x}, response {:#04x}",
                head.0[2]
            ))),
        }
    }

    /// The next PDU's header, if it is there.
    fn take_head(&mut self) -> Result<Option<Half>> {
        let Some(bytes) = self.incoming[self.seen..self.filled].first_chunk::<{ p::HEAD_LEN }>()
        else {
            return Ok(None);
        };
        let head = Head(*bytes);
        let (len, pad) = head.segment();
        if bytes[4] != 0 || len > p::SEGMENT_MAX {
            return Err(wrong(format!("a data segment of {len} bytes")));
        }
        if head.opcode() == p::DATA_IN {
            let length = self.requests[usize::from(self.slot(&head)?)].length as usize;
            if head.get(40) as usize + len > length {
                return Err(wrong("more data than were asked for".to_owned()));
            }
        }
        self.seen += p::HEAD_LEN;
        Ok(Some(Half {
            head,
            got: 0,
            len,
            padded: len + pad,
        }))
    }

    /// Takes the data of a PDU as far as they are there; true when they all are.
    fn take_data(&mut self, mut half: Half) -> bool {
        let part = (half.padded - half.got).min(self.filled - self.seen);
        if self.keep && half.head.opcode() == p::DATA_IN && half.got < half.len {
            let wanted = part.min(half.len - half.got);
            let at =
                half.head.tag() as usize * self.slot_bytes + half.head.get(40) as usize + half.got;
            self.data
                .fill(at, &self.incoming[self.seen..self.seen + wanted]);
        }
        self.seen += part;
        half.got += part;
        let all = half.got == half.padded;
        self.half = (!all).then_some(half);
        all
    }

    fn take_what_is_there(&mut self, answered: &mut Vec<u16>) -> Result<()> {
        loop {
            let half = match self.half.take() {
                Some(half) => half,
                None => match self.take_head()? {
                    Some(half) => half,
                    None => return Ok(()),
                },
            };
            if !self.take_data(half) {
                return Ok(());
            }
            answered.extend(self.whole(&half.head)?);
        }
    }

    /// Sends what the window had no place for, as far as it has now.
    fn resume(&mut self) -> Result<()> {
        while self.session.numbers.is_open()
            && let Some(slot) = self.waiting.pop_front()
        {
            self.command(slot);
        }
        match self.outgoing.is_empty() {
            true => Ok(()),
            false => self.send(),
        }
    }
}

impl Port for IscsiPort {
    fn queue(&mut self, slot: u16, request: Request) -> Result<()> {
        self.requests[usize::from(slot)] = request;
        match self.session.numbers.is_open() && self.waiting.is_empty() {
            true => self.command(slot),
            false => self.waiting.push_back(slot),
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        while self.sent < self.outgoing.len() {
            match self.session.wire.stream.write(&self.outgoing[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(())
    }

    fn take(&mut self, answered: &mut Vec<u16>) -> Result<()> {
        loop {
            self.incoming.copy_within(self.seen..self.filled, 0);
            self.filled -= self.seen;
            self.seen = 0;
            let room = self.incoming.len() - self.filled;
            match self
                .session
                .wire
                .stream
                .read(&mut self.incoming[self.filled..])
            {
                Ok(0) => return Err(wrong("the target closed the connection".to_owned())),
                Ok(bytes) => {
                    self.filled += bytes;
                    self.take_what_is_there(answered)?;
                    if bytes < room {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.resume()
    }

    fn fill(&mut self, slot: u16, at: usize, bytes: &[u8]) {
        self.data
            .fill(usize::from(slot) * self.slot_bytes + at, bytes);
    }

    fn fetch(&self, slot: u16, at: usize, bytes: &mut [u8]) {
        self.data
            .fetch(usize::from(slot) * self.slot_bytes + at, bytes);
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn event(&self) -> (RawFd, bool) {
        (
            self.session.wire.stream.as_raw_fd(),
            !self.outgoing.is_empty(),
        )
    }
}

impl Drop for IscsiPort {
    fn drop(&mut self) {
        let head = self
            .session
            .numbers
            .stamp(Head::new(p::LOGOUT | p::IMMEDIATE, p::FINAL, 0));
        // A target that is gone needs no goodbye.
        let _ = self.session.wire.stream.write(&head.0);
    }
}
