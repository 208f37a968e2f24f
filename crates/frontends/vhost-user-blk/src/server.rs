//! One ring, served by a task on one of the daemon's loops.
//!
//! While requests come and go the task looks at the ring itself and the guest does not kick.
//! When nothing has happened for as long as the export's policy says (`polling.rs`) it allows kicks and sleeps
//! until a kick, a completion or the end, so that a request never waits for the completion of another one.

use crate::ahead::Ahead;
use crate::chain::Chain;
use crate::parts::{Ended, Parts};
use crate::polling::Looking;
use crate::request::{Answer, Parser, Request, Submission};
use crate::status;
use crate::zeroing::{Step, Zeroing};
use block::{Completion, CompletionQueue, Op, OpKind};
use reactor::{Handle, Signals, Sleep};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

mod trouble;

/// How long to wait before an operation is offered again that the volume refused, when no
/// completion of this ring will come first.
const RETRY_NS: u64 = 500_000;
/// From so many available requests on a quarter of them is left for the next time: with all of them taken, a guest would be
/// answered all at once, and the task would have nothing to do until it has sent as many again.
const MANY: u16 = 8;
/// Pieces of memory that the requests of a ring may have under way, so that a guest that divides its data as finely as it
/// can has no more than a MiB of them listed here. Beyond it requests wait in the ring.
const PIECES_OPEN: usize = 1 << 16;
/// Descriptors that are looked at before other tasks have their turn; the longest chain has four times as many.
const STEPS: u64 = 1 << 14;
/// How often the ring may say that it has entries while none can be read.
const UNREADABLE_MAX: u32 = 16;

/// The ring cannot be served any further.
struct Broken(String);

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        Self(format!("cannot notify the guest: {error}"))
    }
}

impl From<&'static str> for Broken {
    fn from(reason: &'static str) -> Self {
        Self(reason.into())
    }
}

struct Server {
    parts: Parts,
    handle: Handle,
    parser: Parser,
    ahead: Ahead,
    completions: Arc<CompletionQueue>,
    /// By chain head: requests that were taken and not answered.
    open: Vec<Option<Answer>>,
    /// Operations that the volume has.
    submitted: usize,
    /// Pieces of memory of the requests that are open.
    pieces: usize,
    zeroing: Zeroing,
    /// An operation that the volume refused for the moment; nothing is taken meanwhile.
    refused: Option<Op>,
    resubmit: VecDeque<u16>,
    /// Chains in the used ring that the guest was not told of yet.
    put: Vec<u16>,
    /// Completions that are being answered, kept for its memory.
    arrived: VecDeque<Completion>,
    gone: bool,
}

/// Serves a ring until it is stopped, broken, or the volume is gone.
pub(crate) async fn serve(handle: Handle, parts: Parts, ended: std::sync::mpsc::Sender<Ended>) {
    let size = usize::from(parts.ring.size());
    let mut server = Server {
        handle,
        parser: Parser::default(),
        ahead: Ahead::default(),
        completions: CompletionQueue::new(),
        open: vec![None; size],
        submitted: 0,
        pieces: 0,
        zeroing: Zeroing::default(),
        refused: None,
        resubmit: parts.resubmit.iter().copied().collect(),
        put: Vec::with_capacity(size),
        arrived: VecDeque::new(),
        gone: false,
        parts,
    };
    // What a daemon that died had put into the used ring may never have been notified.
    let mut result = server.notify();
    if result.is_ok() {
        result = server.run().await;
    }
    if let Err(Broken(reason)) = result {
        server.give_up(&reason);
        server.wait_for_device().await;
    }
    let next_avail = server.parts.ring.next_avail();
    let _ = ended.send(Ended { next_avail });
}

impl Server {
    async fn run(&mut self) -> Result<(), Broken> {
        let kicks = self.handle.signals(self.parts.kick.fd());
        let (mut looking, mut unreadable) = (Looking::default(), 0);
        self.parts.ring.disable_kicks();
        loop {
            self.check_memory()?;
            let stopping = self.parts.control.stopping() || self.gone;
            if stopping && self.parts.control.disconnected() {
                self.completions.give_up();
            }
            let waited = self.submitted > 0;
            let mut progress = self.offer_again();
            if !stopping {
                let came = self.take_requests()?;
                looking.came(came, waited);
                progress |= came > 0;
            }
            progress |= self.answer_all()?;
            if self.parts.control.abandoned()
                || (stopping && self.submitted == 0 && self.refused.is_none())
            {
                return Ok(());
            }
            let now_ns = self.handle.now_ns();
            if progress {
                unreadable = 0;
                looking.progressed(now_ns, waited);
            }
            let (polling, under_way) = (self.parts.polling.get(), self.submitted);
            let looks = (under_way > 0 || !stopping) && looking.goes_on(polling, now_ns, under_way);
            if progress || looks {
                self.handle.yield_now().await;
                continue;
            }
            let may_take = !stopping && self.may_take();
            if may_take && self.parts.ring.enable_kicks() {
                unreadable += 1;
                if unreadable > UNREADABLE_MAX {
                    return Err(Broken("its available entries cannot be read".into()));
                }
                continue;
            }
            let rested = self.submitted == 0;
            let answered = self.sleep(&kicks, stopping).await?;
            let now_ns = self.handle.now_ns();
            looking.woke(now_ns, rested);
            if answered {
                looking.progressed(now_ns, true);
            }
            self.parts.ring.disable_kicks();
        }
    }

    /// Sleeps until a kick, a completion, a word of the control thread, or the time to offer a
    /// refused operation again. `ending`: the caller knows that it is to stop, and only requests in flight
    /// keep it; a word that came since then ends the sleep at once. True when completions ended it, which
    /// have been answered.
    async fn sleep(&mut self, kicks: &Signals, ending: bool) -> Result<bool, Broken> {
        let mut retry: Option<Sleep> = self.refused.as_ref().map(|_| self.handle.sleep(RETRY_NS));
        let arrived = poll_fn(|context| {
            self.parts.control.listen(context);
            if (self.parts.control.stopping() && !ending) || self.parts.control.abandoned() {
                return Poll::Ready(Ok(None));
            }
            if let Poll::Ready(completion) = self.completions.poll_next(context.waker()) {
                return Poll::Ready(Ok(Some(completion)));
            }
            if let Some(sleep) = &mut retry
                && Pin::new(sleep).poll(context).is_ready()
            {
                return Poll::Ready(Ok(None));
            }
            if ending {
                return Poll::Pending;
            }
            kicks.poll_next(context).map_ok(|()| None)
        })
        .await
        .map_err(|error| Broken(format!("cannot wait for kicks: {error}")))?;
        self.arrived.extend(arrived);
        self.answer_all()
    }

    /// Offers the refused operation again; true when the volume took it.
    fn offer_again(&mut self) -> bool {
        match self.refused.take() {
            Some(op) => {
                self.submit(op);
                self.submit_zeroes();
                self.refused.is_none()
            }
            None => false,
        }
    }

    fn submit(&mut self, op: Op) {
        match self.parts.volume.device.submit(op) {
            Ok(()) => self.submitted += 1,
            Err(op) => self.refused = Some(op),
        }
    }

    /// Offers the writes of zeroes that are due. Those that are left are due as long as another operation was refused.
    fn submit_zeroes(&mut self) {
        while self.refused.is_none()
            && let Some(step) = self.zeroing.next()
        {
            let Step {
                head,
                offset,
                len,
                flags,
                buf,
            } = step;
            self.submit(Op {
                tag: u64::from(head),
                kind: OpKind::Write,
                flags,
                offset,
                len,
                buf,
                done: self.completions.clone(),
            });
        }
    }

    /// Whether a request may be taken: the volume takes operations, and not too much is listed.
    fn may_take(&self) -> bool {
        self.refused.is_none() && self.pieces < PIECES_OPEN
    }

    /// Takes requests that the guest has made available, if there are many not all; returns how many there were, none if
    /// none was taken.
    fn take_requests(&mut self) -> Result<usize, Broken> {
        let available = self.parts.ring.look();
        let taken = match available {
            MANY.. => available - available / 4,
            few => few,
        };
        let left = usize::from(available - taken);
        let most = self.resubmit.len() + usize::from(taken);
        let mut count = 0;
        let steps = self.parser.steps();
        while self.may_take() && count < most && self.parser.steps() - steps < STEPS {
            let head = match self.resubmit.pop_front() {
                Some(head) => head,
                None => {
                    let Some(head) = self.parts.ring.take()? else {
                        break;
                    };
                    if self.parts.ring.available() > 0 {
                        self.ahead.fetch(&self.parts.ring, &self.parts.memory);
                    }
                    if usize::from(head) >= self.open.len() {
                        return Err(Broken(format!("chain head {head} past the end")));
                    }
                    if let Some(inflight) = &mut self.parts.inflight {
                        inflight.begin(head);
                    }
                    head
                }
            };
            count += 1;
            self.start(head)?;
        }
        self.publish()?;
        Ok(if count > 0 { count + left } else { 0 })
    }

    /// Starts one request, or answers it at once.
    fn start(&mut self, head: u16) -> Result<(), Broken> {
        let slot = usize::from(head);
        if self.open[slot].is_some() {
            return Err(Broken(format!("chain {head} was made available twice")));
        }
        let write_through = self.parts.write_through.load(Ordering::Relaxed);
        let Parts {
            memory,
            ring,
            volume,
            ..
        } = &self.parts;
        let chain = Chain::new(memory, ring.table(), ring.size(), head);
        match self.parser.parse(memory, chain, volume, write_through) {
            Request::Submit(Submission {
                kind,
                flags,
                offset,
                len,
                answer,
            }) => {
                let buf = self.parser.take_buf();
                self.open[slot] = Some(answer);
                self.pieces += usize::from(answer.pieces);
                if kind == OpKind::WriteZeroes && flags.no_unmap {
                    self.zeroing.begin(head, offset, len, flags);
                    self.submit_zeroes();
                    return Ok(());
                }
                self.submit(Op {
                    tag: u64::from(head),
                    kind,
                    flags,
                    offset,
                    len,
                    buf,
                    done: self.completions.clone(),
                });
                Ok(())
            }
            Request::Done { status, answer } => self.give_back(head, Some((status, answer))),
            Request::Refused { reason, answer } => {
                self.log_malformed(reason);
                self.give_back(head, Some((status::IO_ERROR, answer)))
            }
            Request::Malformed(reason) => {
                self.log_malformed(reason);
                self.give_back(head, None)
            }
        }
    }

    /// Notifies the guest.
    fn notify(&self) -> Result<(), Broken> {
        Ok(self.parts.bell.call()?)
    }

    /// Answers what has completed, with one notification; true when there was anything.
    fn answer_all(&mut self) -> Result<bool, Broken> {
        self.completions.take(&mut self.arrived);
        if self.arrived.is_empty() {
            return Ok(false);
        }
        // Data that were read from memory that is gone, or into it, are not answered for.
        self.check_memory()?;
        let mut arrived = std::mem::take(&mut self.arrived);
        self.submitted -= arrived.len();
        for completion in &arrived {
            self.answer(completion)?;
        }
        self.publish()?;
        self.submit_zeroes();
        arrived.clear();
        self.arrived = arrived;
        Ok(true)
    }

    fn answer(&mut self, completion: &Completion) -> Result<(), Broken> {
        let head = completion.tag as u16;
        if self.zeroing.goes_on(head, completion.result.is_ok()) {
            return Ok(());
        }
        let answer = self.open[usize::from(head)].take();
        let Some(mut answer) = answer else {
            return Err(Broken(format!("the volume completed chain {head} twice")));
        };
        self.pieces -= usize::from(answer.pieces);
        match status::of(&completion.result) {
            Some(status) => {
                if status != status::OK {
                    answer.written = 1;
                }
                self.give_back(head, Some((status, answer)))
            }
            None => {
                if !std::mem::replace(&mut self.gone, true) {
                    (self.parts.hang_up)();
                }
                Ok(())
            }
        }
    }

    /// Puts a chain into the used ring; the guest is told by [`Server::publish`].
    fn give_back(&mut self, head: u16, answer: Option<(u8, Answer)>) -> Result<(), Broken> {
        let written = match answer {
            Some((status, answer)) => {
                if !self.parts.memory.write_byte(answer.status_at, status) {
                    return Err(Broken("cannot write a status".into()));
                }
                answer.written
            }
            None => 0,
        };
        if let Some(inflight) = &mut self.parts.inflight {
            inflight.ending(head);
        }
        self.parts.ring.put(head, written);
        self.put.push(head);
        Ok(())
    }

    /// Shows the guest what is new in the used ring, and notifies it if it wants that.
    fn publish(&mut self) -> Result<(), Broken> {
        if self.put.is_empty() {
            return Ok(());
        }
        let ring = &mut self.parts.ring;
        ring.publish();
        if let Some(inflight) = &mut self.parts.inflight {
            inflight.ended(&self.put, ring.next_used());
        }
        self.put.clear();
        match ring.wants_call() {
            true => self.notify(),
            false => Ok(()),
        }
    }
}
