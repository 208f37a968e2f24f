//! What goes to the initiator: PDUs in order, put together so that several leave by one system call.

use crate::bytes::put;
use crate::digest::{self, padding};
use crate::negotiate::Agreed;
use crate::pdu::{HEAD_LEN, Made, StatusNumber};
use block::IoBuf;
use reactor::{Event, Handle, SECOND_NS, Stream, in_time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IoSlice, Result};
use std::ops::Range;
use std::rc::Rc;

/// PDUs, and bytes of data, after which a batch is written.
const BATCH_PDUS: usize = 128;
const BATCH_BYTES: usize = 1 << 20;
/// A peer has this long to take a batch.
const WRITE_NS: u64 = 60 * SECOND_NS;

/// The data segment of a PDU.
pub(crate) enum Data {
    None,
    Own(Vec<u8>),
    /// A part of what a command returned.
    Part(Rc<IoBuf>, Range<usize>),
}

impl Data {
    /// Leaves the memory to the next command.
    fn give_back(self) {
        if let Self::Part(buf, _) = self
            && let Ok(buf) = Rc::try_unwrap(buf)
        {
            buf.give_back();
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Own(bytes) => bytes,
            Self::Part(buf, range) => buf.as_bytes().map_or(&[], |bytes| &bytes[range.clone()]),
        }
    }
}

/// A PDU on its way.
pub(crate) struct Pdu {
    pub made: Made,
    pub data: Data,
    /// What it gives back when it is written: bytes of memory, and the place of a command.
    pub held: u64,
    pub ends_command: bool,
}

/// The queue, and the numbers that PDUs get when they leave it.
pub(crate) struct Output {
    queue: RefCell<VecDeque<Pdu>>,
    more: Event,
    /// Something was written.
    pub room: Event,
    /// Nothing more will come.
    closing: Cell<bool>,
    status_number: Cell<u32>,
    /// The next number of a command (ExpCmdSN).
    pub command_number: Cell<u32>,
    /// Commands that have a place in the window.
    pub in_use: Cell<u32>,
    /// Bytes of what commands have read and are to read.
    pub held: Cell<u64>,
    depth: u32,
}

/// Headers, padding and digests of one batch.
#[derive(Default)]
struct Batch {
    small: Vec<u8>,
    /// Each PDU with its header's and its tail's place in `small`.
    pdus: Vec<(Range<usize>, Range<usize>, Pdu)>,
}

impl Output {
    pub(crate) fn new(status_number: u32, command_number: u32, depth: u32) -> Self {
        Self {
            queue: RefCell::default(),
            more: Event::default(),
            room: Event::default(),
            closing: Cell::new(false),
            status_number: Cell::new(status_number),
            command_number: Cell::new(command_number),
            in_use: Cell::new(0),
            held: Cell::new(0),
            depth,
        }
    }

    pub(crate) fn push(&self, made: Made, data: Data) {
        self.push_pdu(Pdu {
            made,
            data,
            held: 0,
            ends_command: false,
        });
    }

    pub(crate) fn push_pdu(&self, pdu: Pdu) {
        self.queue.borrow_mut().push_back(pdu);
        self.more.notify();
    }

    /// PDUs that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Has [`Output::write`] end after what is there.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.more.notify();
    }

    /// The last number of a command that is taken (MaxCmdSN).
    pub(crate) fn last_command(&self) -> u32 {
        let free = self.depth.saturating_sub(self.in_use.get());
        self.command_number.get().wrapping_add(free).wrapping_sub(1)
    }

    fn encode(&self, batch: &mut Batch, mut pdu: Pdu, agreed: &Agreed) {
        if pdu.ends_command {
            self.in_use.set(self.in_use.get() - 1);
        }
        let number = self.status_number.get();
        match pdu.made.number {
            StatusNumber::Takes => {
                put(&mut pdu.made.head, 24, &number.to_be_bytes());
                self.status_number.set(number.wrapping_add(1));
            }
            StatusNumber::Shows => put(&mut pdu.made.head, 24, &number.to_be_bytes()),
            StatusNumber::Without => {}
        }
        put(
            &mut pdu.made.head,
            28,
            &self.command_number.get().to_be_bytes(),
        );
        put(&mut pdu.made.head, 32, &self.last_command().to_be_bytes());
        let data = pdu.data.bytes();
        pdu.made.data_len(data.len());
        let start = batch.small.len();
        batch.small.extend_from_slice(&pdu.made.head);
        if agreed.header_digest {
            batch
                .small
                .extend(digest::of(&batch.small[start..start + HEAD_LEN]));
        }
        let tail = batch.small.len();
        if !data.is_empty() {
            batch.small.resize(tail + padding(data.len()), 0);
            if agreed.data_digest {
                batch.small.extend(digest::of_padded(data));
            }
        }
        let end = batch.small.len();
        batch.pdus.push((start..tail, tail..end, pdu));
    }

    fn fill(&self, batch: &mut Batch, agreed: &Agreed) {
        let mut bytes = 0;
        while batch.pdus.len() < BATCH_PDUS && bytes < BATCH_BYTES {
            let Some(pdu) = self.queue.borrow_mut().pop_front() else {
                return;
            };
            bytes += pdu.data.bytes().len();
            self.encode(batch, pdu, agreed);
        }
    }

    /// Writes what comes until it is closed, or the connection breaks.
    pub(crate) async fn write(&self, handle: &Handle, stream: &Stream, agreed: &Agreed) {
        let mut batch = Batch::default();
        let mut broken = false;
        loop {
            let more = self.more.wait();
            self.fill(&mut batch, agreed);
            if batch.pdus.is_empty() {
                if self.closing.get() {
                    stream.shutdown();
                    return;
                }
                more.await;
                continue;
            }
            if !broken
                && in_time(handle, WRITE_NS, batch.write(stream))
                    .await
                    .is_err()
            {
                broken = true;
                stream.shutdown();
            }
            let mut held = 0;
            for (_, _, pdu) in batch.pdus.drain(..) {
                held += pdu.held;
                pdu.data.give_back();
            }
            batch.small.clear();
            self.held.set(self.held.get() - held);
            self.room.notify();
        }
    }
}

impl Batch {
    async fn write(&self, stream: &Stream) -> Result<()> {
        let mut parts = Vec::with_capacity(3 * self.pdus.len());
        for (head, tail, pdu) in &self.pdus {
            parts.push(IoSlice::new(&self.small[head.clone()]));
            let data = pdu.data.bytes();
            if !data.is_empty() {
                parts.push(IoSlice::new(data));
            }
            if !tail.is_empty() {
                parts.push(IoSlice::new(&self.small[tail.clone()]));
            }
        }
        stream.write_all(&mut parts).await
    }
}
