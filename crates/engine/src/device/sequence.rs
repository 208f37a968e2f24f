//! A discard or write of zeroes of many regions, carried out a few regions at a time.
//!
//! The next region goes to its shard when one has ended, so that what a host asks for in one command takes no more
//! memory, nor places in shards' queues, than a short one, and other volumes have their turn in between. The first
//! error ends it: what was not begun by then is not.

use super::volume::Ports;
use crate::shard::{Asker, ShardOp};
use block::{Completion, CompletionSink, IoBuf, IoError, Op, OpFlags, OpKind};
use format::{REGION, shard_of};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Regions of one operation that shards have at a time.
const WINDOW: usize = 8;

/// The operation, and how far it is.
pub struct Sequence {
    ports: Ports,
    volume: u32,
    root: u32,
    by: Asker,
    tag: u64,
    kind: OpKind,
    flags: OpFlags,
    bytes: Range<u64>,
    done: Arc<dyn CompletionSink>,
    state: Mutex<State>,
}

struct State {
    /// First byte that was not given to a shard yet.
    next: u64,
    under_way: usize,
    error: Option<IoError>,
}

impl Sequence {
    /// Begins `op` on a volume whose chunks are divided among the shards at `ports` by `root`.
    pub fn begin(ports: Ports, (volume, root): (u32, u32), op: Op, by: Asker) {
        let sequence = Arc::new(Self {
            ports,
            volume,
            root,
            by,
            tag: op.tag,
            kind: op.kind,
            flags: op.flags,
            bytes: op.offset..op.offset + op.len,
            done: op.done,
            state: Mutex::new(State {
                next: op.offset,
                under_way: 0,
                error: None,
            }),
        });
        let first = sequence.take(sequence.lock());
        sequence.send(first);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts that may begin now: offset and length in bytes.
    fn take(&self, mut state: std::sync::MutexGuard<'_, State>) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        while state.error.is_none() && state.under_way < WINDOW && state.next < self.bytes.end {
            let end = (state.next / REGION + 1) * REGION;
            let end = end.min(self.bytes.end);
            parts.push((state.next, end - state.next));
            state.next = end;
            state.under_way += 1;
        }
        parts
    }

    fn send(self: &Arc<Self>, parts: Vec<(u64, u64)>) {
        for (offset, len) in parts {
            let shard = shard_of(self.root, offset / REGION, self.ports.len());
            let (port, in_flight) = &self.ports[shard];
            let part = Arc::new(Part(self.clone()));
            port.push(ShardOp {
                volume: self.volume,
                op: Op {
                    tag: 0,
                    kind: self.kind,
                    flags: self.flags,
                    offset,
                    len,
                    buf: IoBuf::empty(),
                    done: part,
                },
                by: self.by,
                under_way: in_flight.one_more(),
            });
        }
    }
}

/// The end of one of the parts.
struct Part(Arc<Sequence>);

impl CompletionSink for Part {
    fn complete(&self, part: Completion) {
        let sequence = &self.0;
        let mut state = sequence.lock();
        state.under_way -= 1;
        if let Err(error) = part.result {
            state.error.get_or_insert(error);
        }
        let is_over = state.error.is_some() || state.next >= sequence.bytes.end;
        if is_over && state.under_way == 0 {
            let result = state.error.take().map_or(Ok(()), Err);
            drop(state);
            return sequence.done.complete(Completion {
                tag: sequence.tag,
                result,
                buf: IoBuf::empty(),
                extents: Vec::new(),
            });
        }
        let next = sequence.take(state);
        sequence.send(next);
    }
}

#[cfg(test)]
mod tests;
