//! A shard's operations as they arrive, a batch at a time: operations that need not wait are executed here, one after the
//! other, with a look at the clock and a word to its session for several; the rest becomes tasks.

use super::dispatch::{Counted, ShardOp, ShardPort, Taken};
use super::state::Shard;
use crate::io::cpu_prefetch::{Ahead, Seen};
use crate::io::read::slow_path::{Looked, Served};
use crate::space::Class;
use crate::tiering::access_stats::By;
use block::{Completion, CompletionSink, OpKind};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

/// Reads that are counted and completed together.
const TOGETHER: usize = 8;
/// Writes that wait for one write of the journal.
const RECORDED: usize = 64;

/// Such writes, with when they began.
type Recorded = Vec<(ShardOp, u64)>;

/// Progress of an operation that does not wait.
enum Done {
    /// To its end, with what it read.
    Read(Served),
    /// Its record must be in the ring before the completion is reported.
    Recorded,
    /// It is left to a task, a read with what was found of it.
    Not(Looked),
}

/// Operations that have ended and whose sessions do not know it yet: all of one session.
#[derive(Default)]
struct Untold {
    of: Option<Arc<dyn CompletionSink>>,
    completions: VecDeque<Completion>,
}

impl Untold {
    /// Adds a successful one. Those of another session are completed first.
    #[inline]
    fn add(&mut self, op: ShardOp) {
        let ShardOp { op, under_way, .. } = op;
        drop(under_way);
        if !(self.of.as_ref()).is_some_and(|of| Arc::ptr_eq(of, &op.done)) {
            self.tell();
            self.of = Some(op.done);
        }
        self.completions.push_back(Completion {
            tag: op.tag,
            result: Ok(()),
            buf: op.buf,
            extents: Vec::new(),
        });
    }

    fn tell(&mut self) {
        if let Some(of) = &self.of {
            of.complete_all(&mut self.completions);
        }
    }
}

/// Reads that have ended and are not counted yet, one after the other since `since_ns`.
struct Ended {
    since_ns: u64,
    reads: SmallVec<[(Counted, Served, bool); TOGETHER]>,
    untold: Untold,
}

impl Ended {
    #[inline]
    fn add(&mut self, op: ShardOp, served: Served) {
        self.reads.push((Counted::of(&op), served, op.by.bypassed));
        self.untold.add(op);
    }
}

impl Shard {
    /// Carries out the operations that arrive at `port`, until it is closed.
    pub async fn serve(self: Rc<Self>, port: Arc<ShardPort>) {
        let mut batch = VecDeque::new();
        // Kept from batch to batch for their memory.
        let (mut completions, mut recorded) = (VecDeque::new(), Vec::new());
        loop {
            let taken = poll_fn(|context| self.poll_take(&port, context.waker(), &mut batch)).await;
            if taken == Taken::Closed {
                return;
            }
            let mut ended = Ended {
                since_ns: self.handle.now_ns(),
                reads: SmallVec::new(),
                untold: Untold {
                    of: None,
                    completions: std::mem::take(&mut completions),
                },
            };
            let mut ahead = Ahead::default();
            loop {
                self.look_ahead(&mut ahead, &batch);
                // It is taken out once its destination is known: an intermediate place would cost another copy.
                let Some(op) = batch.front_mut() else {
                    break;
                };
                let done = self.try_now(op, ahead.taken());
                let Some(op) = batch.pop_front() else { break };
                match done {
                    Done::Read(served) => ended.add(op, served),
                    Done::Recorded => recorded.push((op, ended.since_ns)),
                    Done::Not(Looked::Block(seen)) => {
                        // An allocation as well, though a smaller one; the drive is asked before this continues.
                        self.handle.spawn_at_once(self.clone().read_one(op, seen));
                    }
                    Done::Not(looked) => {
                        let shard = self.clone();
                        // One allocation an operation that needs a drive: it carries the whole of its state.
                        self.handle
                            .spawn(async move { shard.execute(op, looked).await });
                    }
                }
                self.fetching.some();
                if ended.reads.len() == TOGETHER {
                    self.count_ended(&mut ended);
                }
                if recorded.len() == RECORDED {
                    self.acknowledge_soon(&mut recorded, &mut ended.untold);
                }
            }
            self.count_ended(&mut ended);
            self.acknowledge_soon(&mut recorded, &mut ended.untold);
            completions = ended.untold.completions;
            if taken == Taken::Long {
                self.handle.yield_after_much().await;
            }
        }
    }

    /// Reports completed reads, and counts them with their mean latency.
    fn count_ended(&self, ended: &mut Ended) {
        if ended.reads.is_empty() {
            return;
        }
        ended.untold.tell();
        let now = self.handle.now_ns();
        let took = (now - ended.since_ns) / ended.reads.len() as u64;
        let mut ended_ns = ended.since_ns;
        ended.since_ns = now;
        let mut state = self.state.borrow_mut();
        for row in ended
            .reads
            .chunk_by(|(one, ..), (next, ..)| one.is_like(next))
        {
            let (mut sum, mut fast, mut ram) = (Served::default(), 0, 0);
            self.upkeep.note(took, row.len());
            for (_, served, bypassed) in row {
                sum.add(*served);
                fast += u64::from(served.fast > 0);
                ram += u64::from(served.fast == 0 && served.ram > 0);
                if served.fast > 0 && !bypassed {
                    state.access.forecast().took(Class::Fast, took);
                }
            }
            let count = row.len() as u64;
            ended_ns += count * took;
            self.note_ended(row[0].0, count, took, ended_ns);
            state.count_reads((row[0].0, count), [fast, ram], took, sum);
        }
        ended.reads.clear();
    }

    /// Executes an operation immediately if possible, using the earlier lookup.
    fn try_now(&self, op: &mut ShardOp, seen: Option<Seen>) -> Done {
        if self.state.borrow().failed.is_some() {
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
                    Ok(served) => Done::Read(served),
                    Err(looked) => Done::Not(looked),
                }
            }
            OpKind::Write if !op.op.flags.fua => {
                let by = By::write(op.volume).bypassed(op.by.bypassed);
                match self.write_now(by, (op.op.offset, &op.op.buf), seen) {
                    true => Done::Recorded,
                    false => Done::Not(Looked::Unknown),
                }
            }
            _ => Done::Not(Looked::Unknown),
        }
    }

    /// Completes writes once their records are in the ring: immediately with a journal in memory, then through `untold`.
    fn acknowledge_soon(self: &Rc<Self>, recorded: &mut Recorded, untold: &mut Untold) {
        if recorded.is_empty() {
            return;
        }
        if self.is_written().is_ok_and(|is_written| is_written) {
            return self.acknowledge(recorded, untold);
        }
        let (shard, mut recorded) = (self.clone(), std::mem::take(recorded));
        self.handle.start(async move {
            let Err(error) = shard.written().await else {
                return shard.acknowledge(&mut recorded, &mut Untold::default());
            };
            let now = shard.handle.now_ns();
            for (op, began) in recorded {
                shard.count_op(&op, now - began);
                shard.end(op, Err(error.clone()), Vec::new());
            }
        });
    }

    /// Completes writes whose records are in the ring: similar ones are counted together.
    fn acknowledge(&self, recorded: &mut Recorded, untold: &mut Untold) {
        let now = self.handle.now_ns();
        let mut state = self.state.borrow_mut();
        let are_alike = |(one, began): &(ShardOp, u64), (next, then): &(ShardOp, u64)| {
            began == then && Counted::of(one).is_like(&Counted::of(next))
        };
        for row in recorded.chunk_by(are_alike) {
            let (op, began) = &row[0];
            let took = now - began;
            self.upkeep.note(took, row.len());
            self.note_ended(Counted::of(op), row.len() as u64, took, now);
            state.count_ops(Counted::of(op), row.len() as u64, took);
        }
        drop(state);
        // Data written in place is visible once the completion is reported.
        block::settle();
        recorded.drain(..).for_each(|(op, _)| untold.add(op));
        untold.tell();
    }
}
