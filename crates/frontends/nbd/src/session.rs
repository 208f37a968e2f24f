//! One connection: a task that reads requests and a task that writes replies, on one loop.

use crate::batch::Batch;
use crate::flight::{Answer, Flight, Request, tag};
use crate::handshake::{Agreed, Handshake};
use crate::input::Input;
use crate::protocol::{HEADER_LEN, Header, PAYLOAD_MAX, command};
use crate::shared::{Seat, Shared};
use crate::transmission::{Limits, Task, answer, check, parts};
use block::{Completion, CompletionQueue, CompletionSink, IoBuf, IoError, Op, OpKind};
use reactor::{Event, Handle, SECOND_NS, Stream, within};
use std::cell::RefCell;
use std::io::{Error, ErrorKind, Result};
use std::rc::Rc;
use std::sync::Arc;

/// A peer has this long for its handshake.
const HANDSHAKE_NS: u64 = 10 * SECOND_NS;
/// A peer has this long to send a mebibyte of a payload, or to take a batch of replies.
const TRANSFER_NS: u64 = 60 * SECOND_NS;
/// When the device gave an operation back, it is asked again after this time at the latest.
const RETRY_NS: u64 = SECOND_NS / 1000;
/// A read of so many bytes is left to be carried out and answered, if that can be done at once, before the next request
/// begins: its data are still in the processor's caches when they are sent, and so is its buffer for the next one.
const LONG: usize = 64 << 10;
/// Turns of other tasks that this takes: the shard's, and the writer's.
const TURNS: usize = 2;
/// With more bytes of answers to reads that the peer has not taken the next request waits a little, but not until it does:
/// it may have to send all of that request first.
const UNSENT_MAX: usize = 256 << 10;
const UNSENT_NS: u64 = SECOND_NS / 1000;
/// Bytes counted for what one context tells in answer to a block status.
const STATUS_HELD: usize = 16 << 10;
/// The number of a completion that only wakes the writer.
const NUDGE: u64 = u64::MAX;

struct Session {
    handle: Handle,
    stream: Rc<Stream>,
    shared: Arc<Shared>,
    agreed: Agreed,
    lba_size: u32,
    read_only: bool,
    queue: Arc<CompletionQueue>,
    flight: RefCell<Flight>,
    /// A request has ended: there is room for another one.
    room: Event,
    /// Held until both tasks have ended.
    _seat: Seat,
}

/// Serves one connection until it ends. The errors of a peer concern nobody else.
pub(crate) async fn serve(handle: Handle, stream: Stream, shared: Arc<Shared>, seat: Seat) {
    let stream = Rc::new(stream);
    let mut input = Input::new(stream.clone());
    let handshake = Handshake::new(&stream, &mut input, &shared).run();
    let Some(Ok(Some(agreed))) = within(&handle, HANDSHAKE_NS, handshake).await else {
        return;
    };
    let geometry = shared.device.geometry();
    let session = Rc::new(Session {
        handle: handle.clone(),
        stream,
        shared,
        agreed,
        lba_size: geometry.lba_size,
        read_only: geometry.read_only,
        queue: CompletionQueue::new(),
        flight: RefCell::default(),
        room: Event::default(),
        _seat: seat,
    });
    handle.spawn(session.clone().write_replies());
    // However reading ended, what is in flight is answered if it still can be.
    let _ = session.read_requests(&mut input).await;
    session.flight.borrow_mut().reading_ended = true;
    session.nudge();
}

impl Session {
    fn nudge(&self) {
        self.queue.complete(Completion {
            tag: NUDGE,
            result: Ok(()),
            buf: IoBuf::empty(),
            extents: Vec::new(),
        });
    }

    async fn read_requests(&self, input: &mut Input) -> Result<()> {
        loop {
            let bytes: [u8; HEADER_LEN] = input.array().await?;
            let header = Header::parse(&bytes).ok_or(ErrorKind::InvalidData)?;
            if header.command == command::DISC || self.shared.is_stopping() {
                return Ok(());
            }
            let limits = Limits {
                size: self.shared.size(),
                lba_size: self.lba_size,
                read_only: self.read_only,
                status: !self.agreed.contexts.is_empty(),
            };
            match check(&header, &limits) {
                Ok(task) => self.begin(&header, task, input).await?,
                Err(error) => {
                    if header.command == command::WRITE {
                        // The payload follows all the same; one that no client may send ends
                        // the session.
                        if header.len > PAYLOAD_MAX {
                            return Err(ErrorKind::InvalidData.into());
                        }
                        self.in_time(input.skip(u64::from(header.len))).await?;
                    }
                    self.refuse(&header, error).await;
                }
            }
        }
    }

    async fn in_time<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        within(&self.handle, TRANSFER_NS, step)
            .await
            .unwrap_or_else(|| Err(Error::from(ErrorKind::TimedOut)))
    }

    async fn wait_for_room(&self, bytes: usize) {
        while !self.flight.borrow().has_room(bytes) {
            self.room.wait().await;
        }
    }

    fn request(header: &Header, answer: Answer, parts: usize, held: usize) -> Request {
        Request {
            cookie: header.cookie,
            offset: header.offset,
            len: header.len,
            answer,
            parts,
            error: None,
            first: IoBuf::empty(),
            rest: Vec::new(),
            extents: Vec::new(),
            held,
        }
    }

    /// Answers a request without asking the device.
    async fn refuse(&self, header: &Header, error: IoError) {
        self.wait_for_room(0).await;
        let slot = {
            let mut flight = self.flight.borrow_mut();
            flight.expected += 1;
            flight.begin(Self::request(header, answer(header), 1, 0))
        };
        self.queue.complete(Completion {
            tag: tag(slot, 0),
            result: Err(error),
            buf: IoBuf::empty(),
            extents: Vec::new(),
        });
    }

    /// Gives a request's operations to the device; those of a write as their data arrives.
    async fn begin(&self, header: &Header, task: Task, input: &mut Input) -> Result<()> {
        let (offset, len) = (header.offset, u64::from(header.len));
        if task.kind == OpKind::Status {
            self.begin_status(header, task).await;
            return Ok(());
        }
        if !task.has_data() {
            self.wait_for_room(0).await;
            let request = Self::request(header, task.answer, 1, 0);
            let slot = self.flight.borrow_mut().begin(request);
            self.submit(self.op(tag(slot, 0), task, (offset, len), IoBuf::empty()));
            return Ok(());
        }
        self.wait_for_room(header.len as usize).await;
        let cut = parts(offset, len);
        let request = Self::request(header, task.answer, cut.len(), header.len as usize);
        let slot = self.flight.borrow_mut().begin(request);
        for (index, (offset, len)) in cut.enumerate() {
            let mut buf = self.flight.borrow_mut().buffer(len as usize);
            if task.kind == OpKind::Write {
                buf = self.in_time(input.payload(buf)).await?;
            }
            self.submit(self.op(tag(slot, index), task, (offset, len), buf));
        }
        if task.kind == OpKind::Read && header.len as usize >= LONG {
            self.let_answer().await;
        }
        Ok(())
    }

    /// Lets what was begun be answered, if it can be soon.
    async fn let_answer(&self) {
        for _ in 0..TURNS {
            self.handle.yield_now().await;
        }
        if self.flight.borrow().unsent <= UNSENT_MAX {
            return;
        }
        let sent = async {
            while self.flight.borrow().unsent > UNSENT_MAX {
                self.room.wait().await;
            }
        };
        within(&self.handle, UNSENT_NS, sent).await;
    }

    /// Asks the device for every context that was agreed on.
    async fn begin_status(&self, header: &Header, task: Task) {
        let contexts = &self.agreed.contexts;
        let held = contexts.len() * STATUS_HELD;
        self.wait_for_room(held).await;
        let request = Self::request(header, task.answer, contexts.len(), held);
        let slot = self.flight.borrow_mut().begin(request);
        let range = (header.offset, u64::from(header.len));
        for (index, context) in contexts.iter().enumerate() {
            let kind = context.kind();
            let task = Task { kind, ..task };
            self.submit(self.op(tag(slot, index), task, range, IoBuf::empty()));
        }
    }

    fn op(&self, tag: u64, task: Task, (offset, len): (u64, u64), buf: IoBuf) -> Op {
        Op {
            tag,
            kind: task.kind,
            flags: task.flags,
            offset,
            len,
            buf,
            done: self.queue.clone(),
        }
    }

    fn submit(&self, op: Op) {
        {
            let mut flight = self.flight.borrow_mut();
            flight.expected += 1;
            if !flight.backlog.is_empty() {
                flight.backlog.push_back(op);
                return;
            }
        }
        if let Err(op) = self.shared.device.submit(op) {
            self.flight.borrow_mut().backlog.push_back(op);
            // The writer asks again, after the next completion or a short time.
            self.nudge();
        }
    }

    fn submit_backlog(&self) {
        loop {
            let Some(op) = self.flight.borrow_mut().backlog.pop_front() else {
                return;
            };
            if let Err(op) = self.shared.device.submit(op) {
                self.flight.borrow_mut().backlog.push_front(op);
                return;
            }
        }
    }

    /// Ends the operations that the device did not take: the session ends anyway.
    fn give_up_backlog(&self) {
        let backlog = std::mem::take(&mut self.flight.borrow_mut().backlog);
        for op in backlog {
            self.queue.complete(Completion {
                tag: op.tag,
                result: Err(IoError::new(block::ErrorKind::Gone, "")),
                buf: op.buf,
                extents: Vec::new(),
            });
        }
    }

    async fn next_completion(&self) -> Option<Completion> {
        if self.flight.borrow().backlog.is_empty() {
            return Some(self.queue.next().await);
        }
        within(&self.handle, RETRY_NS, self.queue.next()).await
    }

    fn take(&self, completion: Completion, batch: &mut Batch) {
        if completion.tag == NUDGE {
            return;
        }
        let ended = self.flight.borrow_mut().complete(completion);
        if let Some(request) = ended {
            batch.push(request, &self.agreed);
        }
    }

    /// Writes replies until reading has ended and nothing is in flight any more.
    async fn write_replies(self: Rc<Self>) {
        let mut batch = Batch::default();
        let mut broken = false;
        loop {
            if let Some(completion) = self.next_completion().await {
                self.take(completion, &mut batch);
            }
            while !batch.is_full()
                && let Some(completion) = self.queue.try_next()
            {
                self.take(completion, &mut batch);
            }
            if broken || self.shared.is_stopping() {
                self.give_up_backlog();
            }
            self.submit_backlog();
            if !batch.is_empty() {
                if !broken && self.in_time(batch.write(&self.stream)).await.is_err() {
                    broken = true;
                    self.stream.shutdown();
                }
                let mut flight = self.flight.borrow_mut();
                for request in batch.drain() {
                    flight.release(request);
                }
                drop(flight);
                self.room.notify();
            }
            let flight = self.flight.borrow();
            if flight.reading_ended && flight.expected == 0 {
                self.stream.shutdown();
                return;
            }
        }
    }
}
