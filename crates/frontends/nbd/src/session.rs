//! One connection: a task that reads requests, a task that sends replies (`replies.rs`) and one
//! that detects a disconnect, all on one loop.

use crate::batch::EXTENTS_MAX;
use crate::channel::Channel;
use crate::flight::{Answer, Flight, Request, Tag};
use crate::handshake::Agreed;
use crate::input::Input;
use crate::pieces::{Found, Pieces};
use crate::protocol::{HEADER_LEN, Header, PAYLOAD_MAX, command};
use crate::shared::{Seat, Shared};
use crate::transmission::{Limits, Task, answer, check, parts};
use block::{
    Completion, CompletionQueue, CompletionSink, IoBuf, IoError, Op, OpKind, StatusExtent,
};
use reactor::{Account, Event, Handle, Row, SECOND_NS, within};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// After submitting a read of at least this size, yield so that it can complete and be answered
/// before the next request: its data is still in the CPU caches when it is sent, and its buffer can
/// be reused.
const LONG: usize = 64 << 10;
/// Number of yields: for the shard, and for the writer.
const TURNS: usize = 2;
/// With more unsent bytes of read replies, the next request is delayed a little, but not
/// indefinitely: the peer may have to finish sending it before it reads.
const UNSENT_MAX: usize = 256 << 10;
const UNSENT_NS: u64 = SECOND_NS / 1000;
/// Memory charged for one context of a block status: extents as collected and as sent.
const STATUS_HELD: usize = EXTENTS_MAX * (size_of::<StatusExtent>() + 8);
/// Requests processed in a row before other sessions run, as thousands may have been read ahead.
const ROW_MAX: u32 = 64;
/// Tag of a completion that only wakes the writer.
pub(crate) const NUDGE: u64 = u64::MAX;

pub(crate) struct Session {
    pub handle: Handle,
    pub stream: Rc<Channel>,
    pub shared: Arc<Shared>,
    pub agreed: Agreed,
    lba_size: u32,
    read_only: bool,
    pub queue: Arc<CompletionQueue>,
    /// Its memory of the budgets of the volume and the daemon.
    pub account: Rc<Account>,
    pub flight: RefCell<Flight>,
    /// Signalled when a request has ended, so that another may begin, or the peer is gone.
    pub room: Event,
    /// Replies can no longer be sent.
    gone: Cell<bool>,
    /// Signalled when that happens.
    left: Event,
    /// Held until all tasks have ended.
    _seat: Seat,
}

/// Serves a connection in transmission until it ends. Errors of a peer affect only its connection.
pub(crate) async fn serve(
    handle: Handle,
    (stream, mut input): (Rc<Channel>, Input),
    agreed: Agreed,
    (shared, seat): (Arc<Shared>, Seat),
) {
    input.read_ahead();
    let geometry = shared.device.geometry();
    let account = Rc::new(Account::new([shared.memory.clone()]));
    let session = Rc::new(Session {
        handle: handle.clone(),
        stream,
        shared,
        agreed,
        lba_size: geometry.lba_size,
        read_only: geometry.read_only,
        queue: CompletionQueue::new(),
        flight: RefCell::new(Flight::new(account.clone())),
        account,
        room: Event::default(),
        gone: Cell::new(false),
        left: Event::default(),
        _seat: seat,
    });
    handle.spawn(session.clone().write_replies());
    handle.spawn(session.clone().watch_peer());
    // However reading ended, requests in flight are answered if possible.
    let _ = session.read_requests(&mut input).await;
    session.flight.borrow_mut().reading_ended = true;
    session.nudge();
}

impl Session {
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Abandons the session: only submitted operations are awaited.
    pub(crate) fn give_up(&self) {
        if !self.gone.replace(true) {
            self.stream.shutdown();
            self.flight.borrow_mut().drop_waiting();
            self.queue.give_up();
            self.room.notify();
            self.left.notify();
            self.nudge();
        }
    }

    /// Wakes the writer.
    pub(crate) fn nudge(&self) {
        self.queue.complete(Completion {
            tag: NUDGE,
            result: Ok(()),
            buf: IoBuf::empty(),
            extents: Vec::new(),
        });
    }

    async fn read_requests(&self, input: &mut Input) -> Result<()> {
        let mut row = Row::new(ROW_MAX);
        loop {
            if row.ends() {
                self.handle.yield_now().await;
            }
            let bytes: [u8; HEADER_LEN] = input.array().await?;
            let header = Header::parse(&bytes).ok_or(ErrorKind::InvalidData)?;
            // Thousands of requests may have been read ahead.
            if header.command == command::DISC || self.shared.is_stopping() || self.is_gone() {
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
                        // The payload follows nevertheless; an impermissible length ends the
                        // session.
                        if header.len > PAYLOAD_MAX {
                            return Err(ErrorKind::InvalidData.into());
                        }
                        self.in_time(input.skip(u64::from(header.len))).await?;
                    }
                    self.refuse(&header, error).await?;
                }
            }
        }
    }

    /// The result of a step that waits for the peer; its time limit is shorter while others wait
    /// for memory of this session.
    pub(crate) async fn in_time<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        self.account
            .patiently(&self.handle, step)
            .await
            .unwrap_or_else(|| Err(Error::from(ErrorKind::TimedOut)))
    }

    /// Waits until a request of `bytes` may begin, and charges them. Nothing is read meanwhile.
    ///
    /// # Errors
    /// When the peer disconnects before.
    async fn wait_for_room(&self, bytes: usize) -> Result<()> {
        while !self.flight.borrow().has_room(bytes) && !self.is_gone() {
            self.room.wait().await;
        }
        if !self.is_gone() && self.account.try_take(bytes) {
            return Ok(());
        }
        let mut left = pin!(self.left.wait());
        let mut take = pin!(self.account.take(bytes));
        poll_fn(|context| {
            if self.is_gone() || left.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(ErrorKind::ConnectionAborted.into()));
            }
            take.as_mut().poll(context).map(Ok)
        })
        .await
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
            found: Vec::new(),
            held,
        }
    }

    /// Answers a request without submitting an operation.
    async fn refuse(&self, header: &Header, error: IoError) -> Result<()> {
        self.wait_for_room(0).await?;
        let slot = {
            let mut flight = self.flight.borrow_mut();
            flight.expected += 1;
            flight.begin(Self::request(header, answer(header), 1, 0))
        };
        self.queue.complete(Completion {
            tag: Tag::new(slot, 0).pack(),
            result: Err(error),
            buf: IoBuf::empty(),
            extents: Vec::new(),
        });
        Ok(())
    }

    /// Submits a request's operations; those of a write as its data arrives.
    async fn begin(&self, header: &Header, task: Task, input: &mut Input) -> Result<()> {
        let (offset, len) = (header.offset, u64::from(header.len));
        if task.is_long() {
            return self.begin_long(header, task).await;
        }
        if !task.has_data() {
            self.wait_for_room(0).await?;
            let request = Self::request(header, task.answer, 1, 0);
            let slot = self.flight.borrow_mut().begin(request);
            self.submit(self.op((slot, 0), task, (offset, len), IoBuf::empty()));
            return Ok(());
        }
        self.wait_for_room(header.len as usize).await?;
        if header.len as usize >= LONG {
            self.look_for_peer()?;
        }
        let cut = parts(offset, len);
        let request = Self::request(header, task.answer, cut.len(), header.len as usize);
        let slot = self.flight.borrow_mut().begin(request);
        for (index, (offset, len)) in cut.enumerate() {
            if index > 0 {
                self.let_others().await?;
            }
            let mut buf = self.flight.borrow_mut().buffer(len as usize);
            if task.kind == OpKind::Write {
                buf = self.in_time(input.payload(buf)).await?;
            }
            self.submit(self.op((slot, index), task, (offset, len), buf));
        }
        if task.kind == OpKind::Read && header.len as usize >= LONG {
            self.let_answer().await;
        }
        Ok(())
    }

    /// Before long work, checks whether the peer is still connected: requests sent before a
    /// disconnect are still read, and the task that detects it may not have run.
    ///
    /// # Errors
    /// When the peer is gone: the rest is abandoned.
    fn look_for_peer(&self) -> Result<()> {
        if !self.is_gone() && !self.stream.has_ended() {
            return Ok(());
        }
        self.give_up();
        Err(ErrorKind::ConnectionAborted.into())
    }

    /// Yields between parts of a request, since preparing and filling buffers takes time.
    ///
    /// # Errors
    /// As [`Session::look_for_peer`].
    async fn let_others(&self) -> Result<()> {
        self.handle.yield_after_much().await;
        self.look_for_peer()
    }

    /// Yields to let completed requests be answered.
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

    /// Submits a long request piece by piece; a block status for each selected context.
    async fn begin_long(&self, header: &Header, task: Task) -> Result<()> {
        let kinds: Vec<OpKind> = match task.kind {
            OpKind::Status => self.agreed.contexts.iter().map(|of| of.kind()).collect(),
            kind => vec![kind],
        };
        let mut request = Self::request(header, task.answer, kinds.len(), 0);
        if let Answer::Status { one } = task.answer {
            request.held = kinds.len() * STATUS_HELD;
            request.found.resize_with(kinds.len(), || Found {
                one,
                at: header.offset,
                ..Found::default()
            });
        }
        self.wait_for_room(request.held).await?;
        self.look_for_peer()?;
        let slot = {
            let mut flight = self.flight.borrow_mut();
            let slot = flight.begin(request);
            for (part, kind) in kinds.into_iter().enumerate() {
                flight.wait(Pieces {
                    slot,
                    part,
                    kind,
                    flags: task.flags,
                    range: header.offset..header.offset + u64::from(header.len),
                });
            }
            slot
        };
        debug_assert!(slot < usize::from(u16::MAX), "slots fit a tag");
        self.submit_pieces();
        Ok(())
    }

    fn op(
        &self,
        (slot, part): (usize, usize),
        task: Task,
        (offset, len): (u64, u64),
        buf: IoBuf,
    ) -> Op {
        Op {
            tag: Tag::new(slot, part).pack(),
            kind: task.kind,
            flags: task.flags,
            offset,
            len,
            buf,
            done: self.queue.clone(),
        }
    }
}
