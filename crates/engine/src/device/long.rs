//! Long operations of a volume: reads and writes of more than 64 KiB, discards and writes of zeroes of several regions.
//!
//! They are carried out in parts that take turns (round robin over the operations), and together have a limited number of bytes in the
//! shards at a time: however much a host requests at a time, its volume uses no more memory and drives than that, and others have
//! their turn in between. The parts of one operation have slices of its memory; a copy would take as much memory as hosts
//! like. The first error ends an operation, and so does the disconnection of its client: parts that have not begun by then are
//! left out.

use super::volume::Ports;
use crate::shard::{Asker, LONG_BYTES, ShardOp};
use block::{Completion, CompletionSink, CutBuf, ErrorKind, IoBuf, IoError, Op, OpFlags, OpKind};
use format::{REGION, shard_of};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::CHUNK;
use units::mutation::{Mutation, is_on};

/// Reads and writes of more bytes than this are long.
pub const LONG: u64 = 64 << 10;
/// Bytes of parts that the shards have of one volume at a time: more than a drive's bandwidth times its latency, and a few
/// milliseconds of work, for which operations of others wait.
const BYTES: u64 = 4 << 20;
/// Most bytes of a part of a read that is longer than a chunk. With parts of 1 MiB others on the loop would wait for several of
/// these copies at a time. A write changes all of a chunk or nothing: its parts are whole chunks.
const READ_PART: u64 = LONG_BYTES;
/// Bytes that a part of a discard or a write of zeroes, which has no data, counts as.
const NO_DATA_BYTES: u64 = BYTES / 8;
/// Most long operations of a volume at a time.
const MOST: usize = 1024;

/// Where the part that begins at `from` ends. Reads and writes of no more than a chunk's length are one part, so that they
/// are counted as single operations.
fn end_of_part(kind: OpKind, from: u64, end: u64, whole: u64) -> u64 {
    let within = match kind {
        OpKind::Read if whole > CHUNK as u64 => READ_PART,
        OpKind::Write if whole > CHUNK as u64 => CHUNK as u64,
        _ => REGION,
    };
    end.min((from / within + 1) * within)
}

/// The parts of an operation that has data: start and length, in bytes.
fn data_parts(op: &Op) -> Vec<(usize, usize)> {
    let end = op.offset + op.len;
    let mut parts = Vec::new();
    let mut from = op.offset;
    while from < end {
        let next = end_of_part(op.kind, from, end, op.len);
        parts.push(((from - op.offset) as usize, (next - from) as usize));
        from = next;
    }
    parts
}

/// The memory of an operation.
enum Memory {
    /// None, or all of it for the only part.
    Whole(IoBuf),
    /// Its original memory, and the slices of parts that have not begun.
    Cut(CutBuf, VecDeque<IoBuf>),
}

struct Operation {
    by: Asker,
    tag: u64,
    kind: OpKind,
    flags: OpFlags,
    len: u64,
    done: Arc<dyn CompletionSink>,
    memory: Memory,
    /// First byte that was not passed to a shard yet.
    next: u64,
    end: u64,
    under_way: usize,
    error: Option<IoError>,
}

/// A part that may begin.
struct Next {
    offset: u64,
    len: u64,
    buf: IoBuf,
}

impl Operation {
    fn new(op: Op, by: Asker) -> Self {
        let parts = match op.kind {
            OpKind::Read | OpKind::Write => data_parts(&op),
            _ => Vec::new(),
        };
        let memory = match parts.len() {
            0 | 1 => Memory::Whole(op.buf),
            _ => {
                let (cut, slices) = op.buf.cut(&parts);
                Memory::Cut(cut, slices.into())
            }
        };
        Self {
            by,
            tag: op.tag,
            kind: op.kind,
            flags: op.flags,
            len: op.len,
            done: op.done,
            memory,
            next: op.offset,
            end: op.offset + op.len,
            under_way: 0,
            error: None,
        }
    }

    /// The next part that is to be done.
    fn next(&mut self) -> Option<Next> {
        if self.next < self.end && !self.done.is_wanted() {
            let text = "the client has disconnected";
            self.error
                .get_or_insert_with(|| IoError::new(ErrorKind::Gone, text));
        }
        if self.error.is_some() || self.next >= self.end {
            return None;
        }
        let offset = self.next;
        self.next = end_of_part(self.kind, offset, self.end, self.len);
        let buf = match &mut self.memory {
            Memory::Whole(buf) => std::mem::take(buf),
            Memory::Cut(_, slices) => slices.pop_front().unwrap_or_default(),
        };
        self.under_way += 1;
        Some(Next {
            offset,
            len: self.next - offset,
            buf,
        })
    }

    /// A part has returned, with its memory.
    fn ended(&mut self, result: Result<(), IoError>, buf: IoBuf) {
        self.under_way -= 1;
        if let Memory::Whole(whole) = &mut self.memory {
            *whole = buf;
        }
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn is_over(&self) -> bool {
        self.under_way == 0 && (self.error.is_some() || self.next >= self.end)
    }

    fn answer(self) {
        let buf = match self.memory {
            Memory::Whole(buf) => buf,
            Memory::Cut(cut, slices) => {
                drop(slices);
                // Each part has returned its memory.
                cut.rejoin().unwrap_or_default()
            }
        };
        self.done.complete(Completion {
            tag: self.tag,
            result: self.error.map_or(Ok(()), Err),
            buf,
            extents: Vec::new(),
        });
    }
}

#[derive(Default)]
struct State {
    operations: BTreeMap<u64, Operation>,
    /// Operations that have parts left, by number, in the order of their turns.
    turns: VecDeque<u64>,
    newest: u64,
    /// Bytes of all parts that shards have.
    bytes: u64,
    /// A thread is passing parts to the shards.
    is_giving: bool,
}

impl State {
    /// The next operation and its step; `None` while there is no room for another part.
    fn take(&mut self) -> Option<Turn> {
        while self.bytes < BYTES {
            let number = self.turns.pop_front()?;
            let Some(operation) = self.operations.get_mut(&number) else {
                continue;
            };
            let Some(next) = operation.next() else {
                if operation.is_over() {
                    return self.operations.remove(&number).map(Turn::Over);
                }
                continue;
            };
            let given = Given {
                kind: operation.kind,
                flags: operation.flags,
                by: operation.by,
            };
            self.turns.push_back(number);
            self.bytes += cost(given.kind, next.len);
            return Some(Turn::Part(number, next, given));
        }
        None
    }
}

/// The step of an operation's turn.
enum Turn {
    /// A part of the operation of a number is to begin.
    Part(u64, Next, Given),
    /// It was cancelled, and none of its parts is in flight.
    Over(Operation),
}

/// The common properties of an operation's parts.
struct Given {
    kind: OpKind,
    flags: OpFlags,
    by: Asker,
}

/// Bytes that a part counts as.
fn cost(kind: OpKind, len: u64) -> u64 {
    match kind {
        OpKind::Read | OpKind::Write => len,
        _ => NO_DATA_BYTES,
    }
}

/// The long operations of one volume.
pub struct LongOps {
    ports: Ports,
    volume: u32,
    root: u32,
    state: Mutex<State>,
}

impl LongOps {
    /// Those of a volume whose chunks are divided among the shards at `ports` by `root`.
    pub fn new(ports: Ports, (volume, root): (u32, u32)) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self {
            ports,
            volume,
            root,
            state,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of operations that have not ended.
    pub fn count(&self) -> usize {
        self.lock().operations.len()
    }

    /// Begins an operation that the volume has checked.
    ///
    /// # Errors
    /// The operation, when there are too many.
    pub fn begin(self: &Arc<Self>, op: Op, by: Asker) -> Result<(), Op> {
        let mut state = self.lock();
        if state.operations.len() >= MOST {
            return Err(op);
        }
        state.newest += 1;
        let number = state.newest;
        state.operations.insert(number, Operation::new(op, by));
        state.turns.push_back(number);
        drop(state);
        self.give();
        Ok(())
    }

    /// Passes parts to the shards while there is room.
    fn give(self: &Arc<Self>) {
        let mut state = self.lock();
        // A closed shard completes a part inside `push`, which comes here again: the loop below takes what that freed.
        if std::mem::replace(&mut state.is_giving, true) {
            return;
        }
        while let Some(turn) = state.take() {
            drop(state);
            match turn {
                Turn::Part(number, next, given) => self.push(number, next, given),
                Turn::Over(operation) => operation.answer(),
            }
            state = self.lock();
        }
        state.is_giving = false;
    }

    fn push(self: &Arc<Self>, number: u64, next: Next, given: Given) {
        let Next { offset, len, buf } = next;
        let shard = shard_of(self.root, offset / REGION, self.ports.len());
        let (port, in_flight) = &self.ports[shard];
        let part = Arc::new(Part {
            long: self.clone(),
            number,
            cost: cost(given.kind, len),
        });
        if is_on(Mutation::LongPart) && given.kind == OpKind::Write {
            return part.complete(Completion {
                tag: 0,
                result: Ok(()),
                buf,
                extents: Vec::new(),
            });
        }
        port.push_long(ShardOp {
            volume: self.volume,
            op: Op {
                tag: 0,
                kind: given.kind,
                flags: given.flags,
                offset,
                len,
                buf,
                done: part,
            },
            by: given.by,
            under_way: in_flight.one_more(),
        });
    }
}

/// A part that a shard has.
struct Part {
    long: Arc<LongOps>,
    number: u64,
    cost: u64,
}

impl CompletionSink for Part {
    fn complete(&self, part: Completion) {
        let mut state = self.long.lock();
        state.bytes -= self.cost;
        let ended = state.operations.get_mut(&self.number).is_some_and(|of| {
            of.ended(part.result, part.buf);
            of.is_over()
        });
        let ended = ended.then(|| state.operations.remove(&self.number));
        drop(state);
        if let Some(operation) = ended.flatten() {
            operation.answer();
        }
        self.long.give();
    }
}

#[cfg(test)]
mod tests;
