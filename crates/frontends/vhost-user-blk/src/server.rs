//! One ring, served by a task on one of the daemon's loops.
//!
//! While requests come and go the task looks at the ring itself and the guest does not kick.
//! When nothing has happened for as long as the export's policy says (`polling.rs`) it allows kicks and sleeps
//! until a kick, a completion or the end, so that a request never waits for the completion of another one.

use crate::ahead::Ahead;
use crate::chain::Chain;
use crate::config::SEGMENTS_MAX;
use crate::parts::{Ended, Parts};
use crate::polling::Looking;
use crate::request::{Answer, Parser, Request, Submission};
use crate::status;
use block::{Completion, CompletionQueue, Op};
use reactor::{Handle, Signals, Sleep};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// How long to wait before an operation is offered again that the volume refused, when no
/// completion of this ring will come first.
const RETRY_NS: u64 = 500_000;
/// From so many available requests on a quarter of them is left for the next time: with all of them taken, a guest would be
/// answered all at once, and the task would have nothing to do until it has sent as many again.
const MANY: u16 = 8;
/// How often the ring may say that it has entries while none can be read.
const UNREADABLE_MAX: u32 = 16;

/// The ring cannot be served any further.
struct Broken(String);

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
        refused: None,
        resubmit: parts.resubmit.iter().copied().collect(),
        put: Vec::with_capacity(size),
        arrived: VecDeque::new(),
        gone: false,
        parts,
    };
    // What a daemon that died had put into the used ring may never have been notified.
    server.parts.call.signal();
    if let Err(Broken(reason)) = server.run().await {
        server.publish();
        tracing::error!(
            queue = server.parts.index,
            reason,
            "a guest's ring is not valid; it is served no more until the guest resets the disk"
        );
        server.parts.error.signal();
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
            let stopping = self.parts.control.stopping() || self.gone;
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
            let may_take = !stopping && self.refused.is_none();
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
        while self.refused.is_none() && count < most {
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
        self.publish();
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
        let limit = usize::from(ring.size()).max(SEGMENTS_MAX as usize + 2);
        let chain = Chain::new(memory, ring.table(), ring.size(), head, limit);
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
            Request::Malformed(reason) => {
                tracing::debug!(queue = self.parts.index, reason, "malformed request");
                self.give_back(head, None)
            }
        }
    }

    /// Answers what has completed, with one notification; true when there was anything.
    fn answer_all(&mut self) -> Result<bool, Broken> {
        self.completions.take(&mut self.arrived);
        if self.arrived.is_empty() {
            return Ok(false);
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        self.submitted -= arrived.len();
        for completion in &arrived {
            self.answer(completion)?;
        }
        self.publish();
        arrived.clear();
        self.arrived = arrived;
        Ok(true)
    }

    fn answer(&mut self, completion: &Completion) -> Result<(), Broken> {
        let head = completion.tag as u16;
        let answer = self.open[usize::from(head)].take();
        let Some(mut answer) = answer else {
            return Err(Broken(format!("the volume completed chain {head} twice")));
        };
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
    fn publish(&mut self) {
        if self.put.is_empty() {
            return;
        }
        let ring = &mut self.parts.ring;
        ring.publish();
        if let Some(inflight) = &mut self.parts.inflight {
            inflight.ended(&self.put, ring.next_used());
        }
        self.put.clear();
        if ring.wants_call() {
            self.parts.call.signal();
        }
    }

    /// Waits for what the volume still has, without answering it.
    async fn wait_for_device(&mut self) {
        self.refused = None;
        while self.submitted > 0 && !self.parts.control.abandoned() {
            let control = self.parts.control.clone();
            let completions = self.completions.clone();
            let ended = poll_fn(|context| {
                control.listen(context);
                if control.abandoned() {
                    return Poll::Ready(None);
                }
                completions.poll_next(context.waker()).map(Some)
            });
            if ended.await.is_some() {
                self.submitted -= 1;
            }
        }
    }
}
