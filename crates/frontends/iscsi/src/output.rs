//! Output queue of PDUs, sent in batches with one system call each.

use crate::bytes::put;
use crate::digest::{self, padding};
use crate::memory::Brought;
use crate::negotiate::Agreed;
use crate::pdu::{HEAD_LEN, Made, StatusNumber};
use crate::window::Window;
use block::IoBuf;
use reactor::{Event, Handle, Stream};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IoSlice, Result};
use std::ops::Range;
use std::rc::Rc;

/// PDUs, and bytes of data, at which a batch is sent.
const BATCH_PDUS: usize = 128;
const BATCH_BYTES: usize = 1 << 20;

/// Data segment of a PDU.
pub(crate) enum Data {
    None,
    Own(Vec<u8>),
    /// Data from the initiator that is echoed.
    Echo(Brought),
    /// All data returned by a command.
    Whole(Box<[u8]>),
    /// A part of the data returned by a command.
    Part(Rc<IoBuf>, Range<usize>),
}

impl Data {
    /// Returns the buffer for the next command.
    fn give_back(self) {
        match self {
            Self::None | Self::Own(_) | Self::Echo(_) => {}
            Self::Whole(bytes) => IoBuf::from_bytes(bytes).give_back(),
            Self::Part(buf, _) => {
                if let Ok(buf) = Rc::try_unwrap(buf) {
                    buf.give_back();
                }
            }
        }
    }

    /// Bytes that are not unit data, and so not limited by a command's memory.
    fn own_len(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Echo(bytes) => bytes.len(),
            _ => 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Own(bytes) => bytes,
            Self::Echo(bytes) => bytes,
            Self::Whole(bytes) => bytes,
            Self::Part(buf, range) => buf.as_bytes().map_or(&[], |bytes| &bytes[range.clone()]),
        }
    }
}

/// A queued PDU.
pub(crate) struct Pdu {
    pub made: Made,
    pub data: Data,
    /// Released when it is sent: bytes of memory, and a command's window slot.
    pub held: u64,
    pub ends_command: bool,
}

/// The queue, and the numbers assigned when PDUs leave it.
pub(crate) struct Output {
    queue: RefCell<VecDeque<Pdu>>,
    /// Queued bytes that are not unit data.
    answers: Cell<usize>,
    more: Event,
    /// Signalled when something was sent.
    pub room: Event,
    /// No more PDUs will be queued.
    closing: Cell<bool>,
    /// No more PDUs are sent.
    ended: Cell<bool>,
    status_number: Cell<u32>,
    /// The status number after all queued PDUs.
    promised: Cell<u32>,
    window: Rc<Window>,
}

/// Headers, padding and digests of a batch.
#[derive(Default)]
struct Batch {
    small: Vec<u8>,
    /// PDUs with the ranges of their header and tail in `small`.
    pdus: Vec<(Range<usize>, Range<usize>, Pdu)>,
}

impl Output {
    /// The first status has the number `status_number`.
    pub(crate) fn new(status_number: u32, window: Rc<Window>) -> Self {
        Self {
            queue: RefCell::default(),
            answers: Cell::new(0),
            more: Event::default(),
            room: Event::default(),
            closing: Cell::new(false),
            ended: Cell::new(false),
            status_number: Cell::new(status_number),
            promised: Cell::new(status_number),
            window,
        }
    }

    /// The number after that of the last status queued or sent.
    pub(crate) fn promised(&self) -> u32 {
        self.promised.get()
    }

    pub(crate) fn push(&self, made: Made, data: Data) {
        self.push_pdu(Pdu {
            made,
            data,
            held: 0,
            ends_command: false,
        });
    }

    /// Queues a PDU; if it can no longer be sent, its resources are released immediately.
    pub(crate) fn push_pdu(&self, pdu: Pdu) {
        if self.ended.get() {
            if pdu.ends_command {
                self.window.end_command();
            }
            self.window.free(pdu.held);
            return pdu.data.give_back();
        }
        if pdu.made.number == StatusNumber::Takes {
            self.promised.set(self.promised.get().wrapping_add(1));
        }
        self.answers.set(self.answers.get() + pdu.data.own_len());
        self.queue.borrow_mut().push_back(pdu);
        self.more.notify();
    }

    /// Number of queued PDUs.
    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Queued bytes that are not unit data.
    pub(crate) fn answers(&self) -> usize {
        self.answers.get()
    }

    /// Makes [`Output::write`] return after the queued PDUs.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.more.notify();
    }

    fn encode(&self, batch: &mut Batch, mut pdu: Pdu, agreed: &Agreed) {
        if pdu.ends_command {
            self.window.end_command();
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
        put(&mut pdu.made.head, 28, &self.window.next().to_be_bytes());
        put(&mut pdu.made.head, 32, &self.window.last().to_be_bytes());
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
            self.answers.set(self.answers.get() - pdu.data.own_len());
            self.encode(batch, pdu, agreed);
        }
    }

    /// Sends queued PDUs until closed; after a connection failure they are dropped. Calls `freed`
    /// whenever memory may have been released.
    pub(crate) async fn write(
        &self,
        handle: &Handle,
        stream: &Stream,
        agreed: &Agreed,
        freed: impl Fn(),
    ) {
        let mut batch = Batch::default();
        let mut broken = false;
        loop {
            let more = self.more.wait();
            self.fill(&mut batch, agreed);
            if batch.pdus.is_empty() {
                if self.closing.get() {
                    self.ended.set(true);
                    stream.shutdown();
                    return;
                }
                more.await;
                continue;
            }
            // A batch has a time limit, shorter while others wait for the memory.
            let account = &self.window.account;
            let written = match broken {
                false => account.patiently(handle, batch.write(stream)).await,
                true => None,
            };
            if !broken && !matches!(written, Some(Ok(()))) {
                broken = true;
                stream.shutdown();
            }
            let mut held = 0;
            for (_, _, pdu) in batch.pdus.drain(..) {
                held += pdu.held;
                pdu.data.give_back();
            }
            batch.small.clear();
            self.window.free(held);
            self.room.notify();
            freed();
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
