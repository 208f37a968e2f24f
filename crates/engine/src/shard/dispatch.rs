//! Operations on their way to a shard, and their end.

use super::ahead::Ahead;
use super::heat::By;
use super::read::Looked;
use super::state::Shard;
use crate::space::Class;
use block::{Completion, ErrorKind, IoError, Op, OpKind, StatusExtent};
use reactor::Remote;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use units::mutation::{Mutation, is_on};

/// An operation for a shard.
pub struct ShardOp {
    /// Volume.
    pub volume: u32,
    /// What to do; its range lies in one region.
    pub op: Op,
    /// The volume bypasses who asks for it.
    pub bypassed: bool,
    /// Counted down when it ends.
    pub in_flight: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<ShardOp>,
    waker: Option<Waker>,
    closed: bool,
}

/// Where any thread leaves operations for a shard. How many wait is bounded by the volumes.
pub struct ShardPort {
    /// The loop that the shard lives on.
    pub remote: Remote,
    queue: Mutex<Queue>,
}

impl ShardPort {
    /// The port of a shard on `remote`.
    pub fn new(remote: Remote) -> Arc<Self> {
        Arc::new(Self {
            remote,
            queue: Mutex::default(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an operation; it ends as `Gone` when the shard has closed.
    pub fn push(&self, op: ShardOp) {
        let waker = {
            let mut queue = self.lock();
            if queue.closed {
                drop(queue);
                return finish(
                    op,
                    Err(IoError::new(ErrorKind::Gone, "the pool is closed")),
                    Vec::new(),
                );
            }
            queue.waiting.push_back(op);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends what waits and takes no more.
    pub fn close(&self) {
        let waiting = {
            let mut queue = self.lock();
            queue.closed = true;
            std::mem::take(&mut queue.waiting)
        };
        for op in waiting {
            finish(
                op,
                Err(IoError::new(ErrorKind::Gone, "the pool is closed")),
                Vec::new(),
            );
        }
        if let Some(waker) = self.lock().waker.take() {
            waker.wake();
        }
    }

    fn poll_take(&self, waker: &Waker, into: &mut VecDeque<ShardOp>) -> Poll<bool> {
        let mut queue = self.lock();
        if queue.closed {
            return Poll::Ready(false);
        }
        if queue.waiting.is_empty() {
            queue.waker = Some(waker.clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut queue.waiting, into);
        Poll::Ready(true)
    }
}

fn finish(op: ShardOp, result: Result<(), IoError>, extents: Vec<StatusExtent>) {
    let ShardOp { op, in_flight, .. } = op;
    in_flight.fetch_sub(1, Ordering::AcqRel);
    op.done.complete(Completion {
        tag: op.tag,
        result,
        buf: op.buf,
        extents,
    });
}

/// How far an operation is that waits for nothing.
enum Done {
    /// To its end.
    All,
    /// What it writes is to be in the ring before its host is told.
    Recorded,
    /// It is left to a task, a read with what was found of it.
    Not(Looked),
}

impl Shard {
    /// Carries out the operations that arrive at `port`, until it is closed.
    pub async fn serve(self: Rc<Self>, port: Arc<ShardPort>) {
        let mut batch = VecDeque::new();
        loop {
            if !poll_fn(|context| port.poll_take(context.waker(), &mut batch)).await {
                return;
            }
            // One look at the clock for each: an operation's end is the next one's begin.
            let mut now = self.handle.now_ns();
            let (mut recorded, mut ahead) = (Vec::new(), Ahead::default());
            loop {
                self.look_ahead(&mut ahead, &batch);
                let Some(mut op) = batch.pop_front() else {
                    break;
                };
                ahead.taken();
                let began = now;
                match self.try_now(&mut op, &mut now) {
                    Done::All => finish(op, Ok(()), Vec::new()),
                    Done::Recorded => recorded.push((op, began)),
                    Done::Not(looked) => {
                        let shard = self.clone();
                        // One allocation an operation that needs a drive: it carries the whole of its state.
                        self.handle
                            .spawn(async move { shard.execute(op, looked).await });
                    }
                }
            }
            if !recorded.is_empty() {
                // With a journal in memory it waits for nothing, and needs no turn of its own.
                self.handle.start(self.clone().acknowledge(recorded));
            }
        }
    }

    /// Does at once what can be; `now` is the time before, and when it ended that afterwards.
    fn try_now(&self, op: &mut ShardOp, now: &mut u64) -> Done {
        if self.check().is_err() {
            return Done::Not(Looked::Unknown);
        }
        let began = *now;
        match op.op.kind {
            OpKind::Read => {
                let live = {
                    let state = self.state.borrow();
                    let entry = state.volumes.get(&state.live(op.volume));
                    entry.is_some_and(|entry| !entry.gone)
                };
                if !live {
                    return Done::Not(Looked::Unknown);
                }
                let by = By::read(op.volume).bypassed(op.bypassed);
                let looked = self.read_now(by, op.op.offset, &mut op.op.buf);
                let Looked::Served { fast } = looked else {
                    return Done::Not(looked);
                };
                *now = self.handle.now_ns();
                self.count_op(op, *now - began);
                if fast && !op.bypassed {
                    let waits = &mut self.state.borrow_mut().waits;
                    waits.note(Class::Fast, *now - began);
                }
                Done::All
            }
            OpKind::Write if !op.op.flags.fua => {
                let by = By::write(op.volume).bypassed(op.bypassed);
                match self.write_now(by, op.op.offset, &op.op.buf) {
                    true => Done::Recorded,
                    false => Done::Not(Looked::Unknown),
                }
            }
            _ => Done::Not(Looked::Unknown),
        }
    }

    /// Ends writes, with when they began, once what they recorded is in the ring.
    async fn acknowledge(self: Rc<Self>, recorded: Vec<(ShardOp, u64)>) {
        let result = self.written().await;
        let now = self.handle.now_ns();
        for (op, began) in recorded {
            self.count_op(&op, now - began);
            self.end(op, result.clone(), Vec::new());
        }
    }

    async fn execute(self: Rc<Self>, mut op: ShardOp, looked: Looked) {
        let began = self.handle.now_ns();
        let (volume, offset, len) = (op.volume, op.op.offset, op.op.len);
        let [reads, writes] =
            [By::read(volume), By::write(volume)].map(|by| by.bypassed(op.bypassed));
        let fua = op.op.flags.fua;
        let mut extents = Vec::new();
        let live = {
            let state = self.state.borrow();
            super::leaf::live(state.volumes.get(&state.live(volume))).map(drop)
        };
        let mut result = match (live.and_then(|()| self.check()), op.op.kind) {
            (Err(error), _) => Err(error),
            (Ok(()), OpKind::Read) => self.read(reads, offset, &mut op.op.buf, looked).await,
            (Ok(()), OpKind::Write) => self.write(writes, offset, &op.op.buf).await,
            (Ok(()), OpKind::Flush) if is_on(Mutation::FlushNothing) => Ok(()),
            (Ok(()), OpKind::Flush) => self.barrier().await,
            (Ok(()), OpKind::Discard | OpKind::WriteZeroes) => self.trim(writes, offset, len).await,
            (Ok(()), OpKind::Status | OpKind::Changed(_)) => {
                let since = match op.op.kind {
                    OpKind::Changed(since) => Some(since),
                    _ => None,
                };
                match self.status_of(volume, offset, len, since).await {
                    Ok(found) => {
                        extents = found;
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
        };
        let changes = matches!(
            op.op.kind,
            OpKind::Write | OpKind::WriteZeroes | OpKind::Discard
        );
        if result.is_ok() && changes {
            result = if fua && !is_on(Mutation::FuaIgnored) {
                self.barrier().await
            } else {
                self.written().await
            };
        }
        self.count_op(&op, self.handle.now_ns() - began);
        self.end(op, result, extents);
    }

    /// Ends an operation, and tells of an error that is news.
    fn end(&self, op: ShardOp, result: Result<(), IoError>, extents: Vec<StatusExtent>) {
        if let Err(error) = &result
            && error.kind != ErrorKind::NoSpace
            && error.kind != ErrorKind::Gone
        {
            let (volume, offset, len, kind) = (op.volume, op.op.offset, op.op.len, op.op.kind);
            tracing::warn!(volume, offset, len, ?kind, %error, "an operation failed");
        }
        finish(op, result, extents);
    }

    fn count_op(&self, op: &ShardOp, took: u64) {
        if matches!(op.op.kind, OpKind::Read | OpKind::Write) {
            self.meters.note(took);
        }
        let mut state = self.state.borrow_mut();
        let layer = state.live(op.volume);
        let super::state::State {
            counters, volumes, ..
        } = &mut *state;
        let of_volume = volumes.get_mut(&layer).map(|volume| &mut volume.counters);
        for counters in std::iter::once(counters).chain(of_volume) {
            match op.op.kind {
                OpKind::Read => {
                    counters.reads += 1;
                    counters.read_bytes += op.op.len;
                    counters.read_ns += took;
                }
                OpKind::Write => {
                    counters.writes += 1;
                    counters.write_bytes += op.op.len;
                    counters.write_ns += took;
                }
                OpKind::Flush => counters.flushes += 1,
                OpKind::Discard | OpKind::WriteZeroes | OpKind::Status | OpKind::Changed(_) => {}
            }
        }
    }
}
