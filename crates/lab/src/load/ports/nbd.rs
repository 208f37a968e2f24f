//! A connection to an NBD export, with many requests outstanding.

use super::memory::Pages;
use crate::load::port::{Port, Request};
use crate::nbd::{Place, connect, protocol as p};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// Bytes that are read with one call at most.
const CHUNK: usize = 1 << 20;

/// An answer whose data are not all there.
#[derive(Clone, Copy)]
struct Half {
    slot: u16,
    got: usize,
}

/// A connection.
pub struct NbdPort {
    stream: UnixStream,
    slot_bytes: usize,
    data: Pages,
    /// Whether data that are read are examined.
    keep: bool,
    /// By slot: the bytes that its answer brings.
    expected: Vec<u32>,
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

impl NbdPort {
    /// Connects; returns the connection and the export's size. `keep`: data that are read can be fetched.
    ///
    /// # Errors
    /// If the export does not exist.
    pub fn connect(
        place: &Place,
        slots: u16,
        slot_bytes: usize,
        keep: bool,
    ) -> Result<(Self, u64)> {
        let (stream, size) = connect(&place.socket, &place.export)?;
        let stream = stream.into_inner();
        stream.set_nonblocking(true)?;
        let slots = usize::from(slots);
        let port = Self {
            stream,
            slot_bytes,
            data: Pages::new(slots * slot_bytes),
            keep,
            expected: vec![0; slots],
            outgoing: Vec::with_capacity(slots * (p::REQUEST_LEN + slot_bytes)),
            sent: 0,
            incoming: vec![0; CHUNK],
            seen: 0,
            filled: 0,
            half: None,
        };
        Ok((port, size))
    }

    /// Takes the data of an answer as far as they are there; true when they all are.
    fn take_data(&mut self, mut half: Half) -> bool {
        let wanted = self.expected[usize::from(half.slot)] as usize - half.got;
        let part = wanted.min(self.filled - self.seen);
        if self.keep {
            let at = usize::from(half.slot) * self.slot_bytes + half.got;
            self.data
                .fill(at, &self.incoming[self.seen..self.seen + part]);
        }
        self.seen += part;
        half.got += part;
        self.half = (part < wanted).then_some(half);
        part == wanted
    }

    /// The next answer's head, if it is there.
    fn take_head(&mut self) -> Result<Option<Half>> {
        let Some(head) = self.incoming[self.seen..self.filled].first_chunk::<{ p::REPLY_LEN }>()
        else {
            return Ok(None);
        };
        let (slot, error) = p::reply(head).map_err(wrong)?;
        self.seen += p::REPLY_LEN;
        if error != 0 {
            return Err(wrong(format!("a request was answered with error {error}")));
        }
        if slot >= self.expected.len() as u64 {
            return Err(wrong(format!(
                "an answer to request {slot}, which there was not"
            )));
        }
        Ok(Some(Half {
            slot: slot as u16,
            got: 0,
        }))
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
            answered.push(half.slot);
        }
    }
}

impl Port for NbdPort {
    fn queue(&mut self, slot: u16, request: Request) -> Result<()> {
        let (command, data) = match request.write {
            true => (p::WRITE, request.length as usize),
            false => (p::READ, 0),
        };
        if self.outgoing.len() + p::REQUEST_LEN + data > self.outgoing.capacity() {
            // What was sent makes room, so that nothing grows.
            self.outgoing.drain(..self.sent);
            self.sent = 0;
        }
        let head = p::request(command, 0, slot.into(), request.offset, request.length);
        self.outgoing.extend_from_slice(&head);
        let at = self.outgoing.len();
        self.outgoing.resize(at + data, 0);
        let from = usize::from(slot) * self.slot_bytes;
        self.data.fetch(from, &mut self.outgoing[at..]);
        self.expected[usize::from(slot)] = if request.write { 0 } else { request.length };
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        while self.sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.sent..]) {
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
        if !self.outgoing.is_empty() {
            self.send()?;
        }
        loop {
            self.incoming.copy_within(self.seen..self.filled, 0);
            self.filled -= self.seen;
            self.seen = 0;
            let room = self.incoming.len() - self.filled;
            match self.stream.read(&mut self.incoming[self.filled..]) {
                Ok(0) => return Err(wrong("the server closed the connection".to_owned())),
                Ok(bytes) => {
                    self.filled += bytes;
                    self.take_what_is_there(answered)?;
                    if bytes < room {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
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
        (self.stream.as_raw_fd(), !self.outgoing.is_empty())
    }
}

impl Drop for NbdPort {
    fn drop(&mut self) {
        // A server that is gone needs no goodbye.
        let _ = self.stream.write(&p::request(p::DISCONNECT, 0, 0, 0, 0));
    }
}
