//! Operations on their way to a shard, and their end.

use super::state::{Shard, State};
use crate::control::spread::{Cell, IoSpread, Source, Spreads};
use crate::control::types::IoCounters;
use crate::io::discard::WhenFull;
use crate::io::read::slow_path::{Looked, Served};
use crate::space::Class;
use crate::tiering::access_stats::By;
use block::{Completion, ErrorKind, IoError, Op, OpKind, StatusExtent};
use reactor::Remote;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use units::mutation::{Mutation, is_on};

/// An operation for a shard.
pub struct ShardOp {
    /// Volume.
    pub volume: u32,
    /// The operation; its range is in one region.
    pub op: Op,
    /// Its origin.
    pub by: Asker,
    /// Counts it until it ends.
    pub under_way: UnderWay,
}

/// The origin of an operation.
#[derive(Clone, Copy, Default)]
pub struct Asker {
    /// The volume bypasses them.
    pub bypassed: bool,
    /// The number of the export that they come by; 0 when it is none that counts.
    pub export: u16,
}

/// How many operations of one volume one shard has: as many as share this with it. A count beside the sharing would
/// be two more words that processors have to agree on, for every operation.
#[derive(Default)]
pub struct InFlight(Arc<Line>);

/// A line of the cache, as every operation writes it.
#[derive(Default)]
#[repr(align(128))]
struct Line;

impl InFlight {
    /// How many there are.
    pub fn get(&self) -> usize {
        let shared = Arc::strong_count(&self.0);
        // What those did that have ended has happened.
        fence(Ordering::Acquire);
        shared - 1
    }

    /// Counts one until what it returns is dropped.
    pub fn one_more(&self) -> UnderWay {
        UnderWay {
            _counted: self.0.clone(),
        }
    }
}

/// One operation of those that an [`InFlight`] counts.
pub struct UnderWay {
    _counted: Arc<Line>,
}

/// Bytes of parts of long operations that a turn of a shard's takes: a tenth of a millisecond where they are in memory.
pub const LONG_BYTES: u64 = 256 << 10;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<ShardOp>,
    /// Parts of long operations, of which a turn of the shard's takes [`LONG_BYTES`], after all others.
    long: VecDeque<ShardOp>,
    waker: Option<Waker>,
    closed: bool,
}

impl Queue {
    /// Takes all short operations, and parts of long ones for a turn: one at least.
    #[cold]
    fn take_long(&mut self, into: &mut VecDeque<ShardOp>) {
        std::mem::swap(&mut self.waiting, into);
        let mut bytes = 0;
        while bytes < LONG_BYTES
            && let Some(part) = self.long.pop_front()
        {
            bytes += part.op.len;
            into.push_back(part);
        }
    }
}

/// The result of taking operations from a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// Nothing any longer: the port is closed.
    Closed,
    /// All that has arrived.
    All,
    /// The same, and parts of long operations at its end: others are to have their turn before the next ones.
    Long,
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
    #[inline]
    pub fn push(&self, op: ShardOp) {
        self.push_to(op, |queue| &mut queue.waiting);
    }

    /// The same for a part of a long operation.
    pub fn push_long(&self, op: ShardOp) {
        self.push_to(op, |queue| &mut queue.long);
    }

    #[inline]
    fn push_to(&self, op: ShardOp, which: impl FnOnce(&mut Queue) -> &mut VecDeque<ShardOp>) {
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
            which(&mut queue).push_back(op);
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends what waits and takes no more.
    pub fn close(&self) {
        let (waiting, long) = {
            let mut queue = self.lock();
            queue.closed = true;
            let queue = &mut *queue;
            (
                std::mem::take(&mut queue.waiting),
                std::mem::take(&mut queue.long),
            )
        };
        for op in waiting.into_iter().chain(long) {
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

    /// Takes arrived operations, with all parts of long ones: the caller gives each its turn.
    pub(crate) fn poll_take_all(&self, waker: &Waker, into: &mut VecDeque<ShardOp>) -> Poll<Taken> {
        let mut queue = self.lock();
        if queue.closed {
            return Poll::Ready(Taken::Closed);
        }
        if queue.waiting.is_empty() && queue.long.is_empty() {
            queue.waker = Some(waker.clone());
            return Poll::Pending;
        }
        debug_assert!(into.is_empty(), "what was taken before is done");
        let Queue { waiting, long, .. } = &mut *queue;
        std::mem::swap(waiting, into);
        into.extend(long.drain(..));
        Poll::Ready(Taken::All)
    }

    /// Takes what has arrived.
    pub(crate) fn poll_take(&self, waker: &Waker, into: &mut VecDeque<ShardOp>) -> Poll<Taken> {
        let mut queue = self.lock();
        if queue.closed {
            return Poll::Ready(Taken::Closed);
        }
        debug_assert!(into.is_empty(), "what was taken before is done");
        if !queue.long.is_empty() {
            queue.take_long(into);
            return Poll::Ready(Taken::Long);
        }
        if queue.waiting.is_empty() {
            queue.waker = Some(waker.clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut queue.waiting, into);
        Poll::Ready(Taken::All)
    }
}

pub(super) fn finish(op: ShardOp, result: Result<(), IoError>, extents: Vec<StatusExtent>) {
    let ShardOp { op, under_way, .. } = op;
    drop(under_way);
    op.done.complete(Completion {
        tag: op.tag,
        result,
        buf: op.buf,
        extents,
    });
}

impl Shard {
    /// Carries out an operation that may have to wait.
    pub(crate) async fn execute(self: Rc<Self>, mut op: ShardOp, looked: Looked) {
        let began = self.handle.now_ns();
        let (volume, offset, len) = (op.volume, op.op.offset, op.op.len);
        let due = self.due(volume);
        let [reads, writes] =
            [By::read(volume), By::write(volume)].map(|by| by.bypassed(op.by.bypassed).due(due));
        let fua = op.op.flags.fua;
        let mut extents = Vec::new();
        let live = {
            let state = self.state.borrow();
            crate::map::page::live(state.volumes.get(&state.live(volume))).map(drop)
        };
        let mut result = match (live.and_then(|()| self.check()), op.op.kind) {
            (Err(error), _) => Err(error),
            (Ok(()), OpKind::Read) => self.read(reads, offset, &mut op.op.buf, looked).await,
            (Ok(()), OpKind::Write) => self.write(writes, offset, &op.op.buf).await,
            (Ok(()), OpKind::Flush) if is_on(Mutation::FlushNothing) => Ok(()),
            (Ok(()), OpKind::Flush) => self.barrier().await,
            (Ok(()), OpKind::Discard) => self.trim(writes, offset, len, WhenFull::Skip).await,
            (Ok(()), OpKind::WriteZeroes) if op.op.flags.no_unmap => {
                self.write_zeroes(writes, offset, len).await
            }
            (Ok(()), OpKind::WriteZeroes) => self.trim(writes, offset, len, WhenFull::Refuse).await,
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

    /// Completes an operation, and logs new errors.
    pub(crate) fn end(&self, op: ShardOp, result: Result<(), IoError>, extents: Vec<StatusExtent>) {
        if let Err(error) = &result
            && error.kind != ErrorKind::NoSpace
            && error.kind != ErrorKind::Gone
        {
            let (volume, offset, len, kind) = (op.volume, op.op.offset, op.op.len, op.op.kind);
            tracing::warn!(volume, offset, len, ?kind, %error, "an operation failed");
        }
        finish(op, result, extents);
    }

    pub(crate) fn count_op(&self, op: &ShardOp, took: u64) {
        let counted = Counted::of(op);
        if counted.has_data() {
            self.upkeep.note(took, 1);
        }
        self.note_ended(counted, 1, took, self.handle.seen_ns());
        self.state.borrow_mut().count_ops(counted, 1, took);
    }
}

/// The statistics of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub volume: u32,
    pub kind: OpKind,
    pub export: u16,
    pub len: u64,
}

impl Counted {
    pub fn of(op: &ShardOp) -> Self {
        Self {
            volume: op.volume,
            kind: op.op.kind,
            export: op.by.export,
            len: op.op.len,
        }
    }

    /// Whether both are counted at the same places.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.volume, self.export) == (other.volume, other.export)
            && (self.kind, self.len) == (other.kind, other.len)
    }

    /// Adds `count` of these, each of which took so long.
    pub(super) fn add_to(self, counters: &mut IoCounters, count: u64, took: u64) {
        match self.kind {
            OpKind::Read => {
                counters.reads += count;
                counters.read_bytes += count * self.len;
                counters.read_ns += count * took;
            }
            OpKind::Write => {
                counters.writes += count;
                counters.write_bytes += count * self.len;
                counters.write_ns += count * took;
            }
            OpKind::Flush => counters.flushes += count,
            OpKind::Discard | OpKind::WriteZeroes | OpKind::Status | OpKind::Changed(_) => {}
        }
    }

    /// Counts `count` of these by their time and size, if they are reads or writes.
    pub(super) fn spread_to(self, spread: &mut IoSpread, count: u64, at: Cell) {
        match self.kind {
            OpKind::Read => spread.reads.note(at, count),
            OpKind::Write => spread.writes.note(at, count),
            _ => {}
        }
    }

    /// Whether it is a read or a write.
    pub fn has_data(&self) -> bool {
        matches!(self.kind, OpKind::Read | OpKind::Write)
    }
}

impl State {
    /// Blocks of a volume that lie together took so long to be read.
    pub(crate) fn count_source(&mut self, volume: u32, class: Class, took: u64) {
        let layer = self.live(volume);
        if let Some(volume) = self.volumes.get_mut(&layer) {
            let source = match class {
                Class::Slow => Source::Slow,
                _ => Source::Fast,
            };
            let spread = volume.spread.get_or_insert_default();
            spread.sources.note(source, took, Cell::of(took, 0), 1);
        }
    }

    /// Counts something of what hosts did to a volume, for the pool and for it.
    pub(crate) fn count_of(&mut self, volume: u32, more: impl Fn(&mut IoCounters)) {
        self.count_moved(self.live(volume), more);
    }

    /// Counts what was moved of a layer, for the pool and for it.
    pub(crate) fn count_moved(&mut self, layer: u32, more: impl Fn(&mut IoCounters)) {
        self.stats.count(&more);
        if let Some(volume) = self.volumes.get_mut(&layer) {
            more(&mut volume.counters);
        }
    }

    /// `count` operations that are like `op` took so long each.
    pub(super) fn count_ops(&mut self, op: Counted, count: u64, took: u64) {
        self.count_ended(op, count, took, |_, _, _| {});
    }

    /// `count` reads that are like `op` took so long each: as many of them had something from a fast drive, as many only
    /// from RAM. The others were of blocks that were never written.
    // Hosts' reads come in rows of the same kind: the places where they are counted are looked for once a row.
    pub(crate) fn count_reads(
        &mut self,
        (op, count): (Counted, u64),
        [fast, ram]: [u64; 2],
        took: u64,
        served: Served,
    ) {
        self.stats.count(|counters| served.add_to(counters));
        // That it is a read is known where this is compiled.
        let op = Counted {
            kind: OpKind::Read,
            ..op
        };
        self.count_ended(op, count, took, |counters, spread, at| {
            served.add_to(counters);
            for (source, count) in [(Source::Fast, fast), (Source::Ram, ram)] {
                if count > 0 {
                    spread.sources.note(source, took, at, count);
                }
            }
        });
    }

    fn count_ended(
        &mut self,
        op: Counted,
        count: u64,
        took: u64,
        more: impl FnOnce(&mut IoCounters, &mut Spreads, Cell),
    ) {
        let layer = self.live(op.volume);
        let at = Cell::of(took, op.len);
        self.stats.ended(op, count, took, at);
        let Some(volume) = self.volumes.get_mut(&layer) else {
            return;
        };
        op.add_to(&mut volume.counters, count, took);
        if op.has_data() {
            let spread = volume.spread.get_or_insert_default();
            op.spread_to(&mut spread.io, count, at);
            more(&mut volume.counters, spread, at);
        }
    }
}
