//! A shard's operations as they arrive, a batch at a time: what waits for nothing is done here, one after the
//! other, with a look at the clock and a word to its session for several; the rest becomes tasks.

use super::ahead::{Ahead, Seen};
use super::dispatch::{Counted, ShardOp, ShardPort};
use super::heat::By;
use super::read::{Looked, Served};
use super::state::Shard;
use crate::space::Class;
use block::{Completion, CompletionSink, OpKind};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

/// Reads that are counted, and told of, together.
const TOGETHER: usize = 8;
/// Writes that wait for one write of the journal.
const RECORDED: usize = 64;

/// How far an operation is that waits for nothing.
enum Done {
    /// To its end, with what it read.
    Read(Served),
    /// What it writes is to be in the ring before its host is told.
    Recorded,
    /// It is left to a task, a read with what was found of it.
    Not(Looked),
}

/// Reads that have ended and are not counted yet, one after the other since `since_ns`.
struct Ended {
    since_ns: u64,
    reads: SmallVec<[(Counted, Served, bool); TOGETHER]>,
    told: Option<Arc<dyn CompletionSink>>,
    completions: Vec<Completion>,
}

impl Ended {
    fn add(&mut self, op: ShardOp, served: Served) {
        self.reads.push((Counted::of(&op), served, op.by.bypassed));
        let ShardOp { op, under_way, .. } = op;
        drop(under_way);
        if !(self.told.as_ref()).is_some_and(|told| Arc::ptr_eq(told, &op.done)) {
            self.tell();
            self.told = Some(op.done);
        }
        self.completions.push(Completion {
            tag: op.tag,
            result: Ok(()),
            buf: op.buf,
            extents: Vec::new(),
        });
    }

    fn tell(&mut self) {
        if let Some(told) = &self.told {
            told.complete_all(&mut self.completions);
        }
    }
}

impl Shard {
    /// Carries out the operations that arrive at `port`, until it is closed.
    pub async fn serve(self: Rc<Self>, port: Arc<ShardPort>) {
        let mut batch = VecDeque::new();
        let mut completions = Vec::new();
        loop {
            if !poll_fn(|context| port.poll_take(context.waker(), &mut batch)).await {
                return;
            }
            let mut ended = Ended {
                since_ns: self.handle.now_ns(),
                reads: SmallVec::new(),
                told: None,
                completions: std::mem::take(&mut completions),
            };
            let (mut recorded, mut ahead) = (Vec::new(), Ahead::default());
            loop {
                self.look_ahead(&mut ahead, &batch);
                let Some(mut op) = batch.pop_front() else {
                    break;
                };
                match self.try_now(&mut op, ahead.taken()) {
                    Done::Read(served) => ended.add(op, served),
                    Done::Recorded => recorded.push((op, ended.since_ns)),
                    Done::Not(looked) => {
                        let shard = self.clone();
                        // One allocation an operation that needs a drive: it carries the whole of its state.
                        self.handle
                            .spawn(async move { shard.execute(op, looked).await });
                    }
                }
                if ended.reads.len() == TOGETHER {
                    self.count_ended(&mut ended);
                }
                if recorded.len() == RECORDED {
                    self.acknowledge_soon(std::mem::take(&mut recorded));
                }
            }
            self.count_ended(&mut ended);
            self.acknowledge_soon(recorded);
            completions = ended.completions;
        }
    }

    /// Tells of reads, and counts them with their mean time.
    fn count_ended(&self, ended: &mut Ended) {
        if ended.reads.is_empty() {
            return;
        }
        ended.tell();
        let now = self.handle.now_ns();
        let took = (now - ended.since_ns) / ended.reads.len() as u64;
        ended.since_ns = now;
        let mut state = self.state.borrow_mut();
        for row in ended
            .reads
            .chunk_by(|(one, ..), (next, ..)| one.is_like(next))
        {
            let (mut sum, mut fast) = (Served::default(), 0);
            for (_, served, bypassed) in row {
                self.meters.note(took);
                sum.add(*served);
                fast += u64::from(served.fast > 0);
                if served.fast > 0 && !bypassed {
                    state.waits.note(Class::Fast, took);
                }
            }
            let ram = row.len() as u64 - fast;
            state.count_reads(row[0].0, [fast, ram], took, sum);
        }
        ended.reads.clear();
    }

    /// Does at once what can be, with what was seen of it ahead.
    fn try_now(&self, op: &mut ShardOp, seen: Option<Seen>) -> Done {
        if self.check().is_err() {
            return Done::Not(Looked::Unknown);
        }
        match op.op.kind {
            OpKind::Read => {
                let is_there = seen.as_ref().is_some_and(|seen| seen.is_alone) || {
                    let state = self.state.borrow();
                    let entry = state.volumes.get(&state.live(op.volume));
                    entry.is_some_and(|entry| !entry.gone)
                };
                if !is_there {
                    return Done::Not(Looked::Unknown);
                }
                let by = By::read(op.volume).bypassed(op.by.bypassed);
                match self.read_seen(by, op.op.offset, &mut op.op.buf, seen) {
                    Looked::Served(served) => Done::Read(served),
                    looked => Done::Not(looked),
                }
            }
            OpKind::Write if !op.op.flags.fua => {
                let by = By::write(op.volume).bypassed(op.by.bypassed);
                match self.write_now(by, op.op.offset, &op.op.buf) {
                    true => Done::Recorded,
                    false => Done::Not(Looked::Unknown),
                }
            }
            _ => Done::Not(Looked::Unknown),
        }
    }

    /// Ends writes, with when they began, once what they recorded is in the ring.
    fn acknowledge_soon(self: &Rc<Self>, recorded: Vec<(ShardOp, u64)>) {
        if recorded.is_empty() {
            return;
        }
        let shard = self.clone();
        // With a journal in memory it waits for nothing, and needs no turn of its own.
        self.handle.start(async move {
            let result = shard.written().await;
            let now = shard.handle.now_ns();
            for (op, began) in recorded {
                shard.count_op(&op, now - began);
                shard.end(op, result.clone(), Vec::new());
            }
        });
    }
}
