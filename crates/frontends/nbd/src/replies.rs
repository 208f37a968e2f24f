//! The sending half of a session: submission of operations, and replies.

use crate::batch::Batch;
use crate::session::{NUDGE, Session};
use block::{Completion, CompletionSink, IoBuf, IoError, Op};
use reactor::{SECOND_NS, within};
use std::rc::Rc;

/// Maximum delay before an operation that the device did not accept is submitted again.
const RETRY_NS: u64 = SECOND_NS / 1000;
/// Time for which an idle session keeps spare buffers.
const IDLE_NS: u64 = SECOND_NS / 10;
/// Time limit for notifying a peer of the end of the session.
const END_NS: u64 = SECOND_NS;

impl Session {
    pub(crate) fn submit(&self, op: Op) {
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
            // The writer resubmits it, after the next completion or a short delay.
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

    /// Submits pieces of long requests within the session's limit.
    pub(crate) fn submit_pieces(&self) {
        while !self.is_gone() {
            let next = self.flight.borrow_mut().next_piece();
            let Some(piece) = next else { return };
            self.submit(Op {
                tag: piece.tag.pack(),
                kind: piece.kind,
                flags: piece.flags,
                offset: piece.range.start,
                len: piece.range.end - piece.range.start,
                buf: IoBuf::empty(),
                done: self.queue.clone(),
            });
        }
    }

    /// Fails operations that the device did not accept, as the session ends.
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
        let (has_backlog, keeps_idle) = {
            let flight = self.flight.borrow();
            (!flight.backlog.is_empty(), flight.keeps_idle())
        };
        if has_backlog {
            return within(&self.handle, RETRY_NS, self.queue.next()).await;
        }
        if keeps_idle {
            let next = within(&self.handle, IDLE_NS, self.queue.next()).await;
            if next.is_some() {
                return next;
            }
            self.flight.borrow_mut().drop_spare();
        }
        Some(self.queue.next().await)
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

    /// Sends replies until reading has ended and nothing is in flight. For a disconnected peer
    /// nothing is sent or submitted.
    pub(crate) async fn write_replies(self: Rc<Self>) {
        let mut batch = Batch::default();
        loop {
            if let Some(completion) = self.next_completion().await {
                self.take(completion, &mut batch);
            }
            while !batch.is_full()
                && let Some(completion) = self.queue.try_next()
            {
                self.take(completion, &mut batch);
            }
            if self.is_gone() || self.shared.is_stopping() {
                self.give_up_backlog();
            }
            self.submit_backlog();
            self.submit_pieces();
            if !batch.is_empty() {
                if !self.is_gone() && self.in_time(batch.write(&self.stream)).await.is_err() {
                    self.give_up();
                }
                let mut flight = self.flight.borrow_mut();
                for request in batch.drain() {
                    flight.release(request);
                }
                drop(flight);
                self.room.notify();
            }
            let flight = self.flight.borrow();
            let nothing_left = self.is_gone() || !flight.has_waiting();
            if flight.reading_ended && flight.expected == 0 && nothing_left {
                break;
            }
        }
        if !self.is_gone() {
            let _ = within(&self.handle, END_NS, self.stream.say_end()).await;
        }
        self.stream.shutdown();
    }

    /// Completes when the peer is unreachable or the session has ended.
    pub(crate) async fn watch_peer(self: Rc<Self>) {
        self.stream.ended().await;
        self.give_up();
    }
}
