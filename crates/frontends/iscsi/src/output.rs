//! What goes to the initiator: PDUs in order, put together so that several leave by one system call.

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

/// PDUs, and bytes of data, after which a batch is written.
const BATCH_PDUS: usize = 128;
const BATCH_BYTES: usize = 1 << 20;

/// The data segment of a PDU.
pub(crate) enum Data {
    None,
    Own(Vec<u8>),
    /// What came from the initiator, and goes back.
    Echo(Brought),
    /// All that a command returned.
    Whole(Box<[u8]>),
    /// A part of what a command returned.
    Part(Rc<IoBuf>, Range<usize>),
}

impl Data {
    /// Leaves the memory to the next command.
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

    /// Bytes that are not of a unit: no command's memory bounds them.
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
    /// Bytes in it that are not of a unit.
    answers: Cell<usize>,
    more: Event,
    /// Something was written.
    pub room: Event,
    /// Nothing more will come.
    closing: Cell<bool>,
    /// Nothing is written any more.
    ended: Cell<bool>,
    status_number: Cell<u32>,
    /// The same, once all that is queued has left.
    promised: Cell<u32>,
    window: Rc<Window>,
}

/// Headers, padding and digests of one batch.
#[derive(Default)]
struct Batch {
    small: Vec<u8>,
    /// Each PDU with its header's and its tail's place in `small`.
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

    /// The number after that of the last status that is queued or has left.
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

    /// Queues a PDU; one that nobody will write any more gives back at once what it holds.
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

    /// PDUs that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Bytes that wait and are not of a unit.
    pub(crate) fn answers(&self) -> usize {
        self.answers.get()
    }

    /// Has [`Output::write`] end after what is there.
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

    /// Writes what comes until it is closed; what comes after the connection broke is dropped. Calls
    /// `freed` whenever memory may have been given back.
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
            // A peer has its time to take a batch, less where others wait for the memory.
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
