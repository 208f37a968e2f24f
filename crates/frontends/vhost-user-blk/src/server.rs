//! Serves one ring by a task on one of the daemon's event loops.
//!
//! While requests arrive, the task polls the ring and the guest does not kick. After a time without
//! progress determined by the export's policy (`polling.rs`) it enables kicks and sleeps until a
//! kick, a completion or the end, so that a request never waits for the completion of another one.

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

/// Maximum delay before an operation that the volume did not accept is submitted again, when no
/// completion of this ring comes first.
const RETRY_NS: u64 = 500_000;
/// From this number of available requests, a quarter is left for the next round: with all of them
/// taken, the guest would receive all responses together, and the task would be idle until it has
/// sent as many again.
const MANY: u16 = 8;
/// Maximum number of memory pieces of the requests in flight of a ring, so that a guest with finely
/// divided buffers uses at most 1 MiB for their lists here. Further requests wait in the ring.
const PIECES_OPEN: usize = 1 << 16;
/// Descriptors processed before other tasks run; the longest chain has four times as many.
const STEPS: u64 = 1 << 14;
/// How often the ring may claim to have entries while none can be read.
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
    /// Requests in flight by chain head.
    open: Vec<Option<Answer>>,
    /// Operations submitted to the volume.
    submitted: usize,
    /// Memory pieces of the requests in flight.
    pieces: usize,
    zeroing: Zeroing,
    /// An operation that the volume did not accept; no requests are taken meanwhile.
    refused: Option<Op>,
    resubmit: VecDeque<u16>,
    /// Chains in the used ring that were not published yet.
    put: Vec<u16>,
    /// Completions being processed; kept to reuse its memory.
    arrived: VecDeque<Completion>,
    gone: bool,
}

/// Serves a ring until it is stopped, fails, or the volume is gone.
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
    // Entries added by a daemon that died may not have been notified.
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
                    return Err(Broken("cannot read its available entries".into()));
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

    /// Sleeps until a kick, a completion, a command of the control thread, or the time to resubmit
    /// an operation. `ending`: the caller knows that it must stop and waits for requests in flight
    /// only; a later command ends the sleep. Returns true if completions ended it, which have been
    /// answered.
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

    /// Resubmits the operation that was not accepted; true if the volume accepted it.
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

    /// Submits due writes of zeroes. They stay due while another operation is not accepted.
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

    /// Whether a request may be taken: the volume accepts operations, and the limit of pieces is
    /// not reached.
    fn may_take(&self) -> bool {
        self.refused.is_none() && self.pieces < PIECES_OPEN
    }

    /// Takes available requests, not all of them if there are many; returns how many were
    /// available, zero if none was taken.
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
                        return Err(Broken(format!(
                            "chain head {head} beyond the end of the ring"
                        )));
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

    /// Starts a request, or answers it immediately.
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

    /// Answers completed requests with one notification; true if there were any.
    fn answer_all(&mut self) -> Result<bool, Broken> {
        self.completions.take(&mut self.arrived);
        if self.arrived.is_empty() {
            return Ok(false);
        }
        // Data read from or into truncated memory must not be acknowledged.
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

    /// Adds a chain to the used ring; [`Server::publish`] notifies the guest.
    fn give_back(&mut self, head: u16, answer: Option<(u8, Answer)>) -> Result<(), Broken> {
        let written = match answer {
            Some((status, answer)) => {
                if !self.parts.memory.write_byte(answer.status_at, status) {
                    return Err(Broken("cannot write the status of a request".into()));
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

    /// Publishes new entries of the used ring, and notifies the guest if requested.
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
