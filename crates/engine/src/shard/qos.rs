//! The gate at the shard's entry (docs/qos.md): operations that arrive while the pool has volumes with policies pass
//! through it, and it is ticked every 20 ms while anything does.
//!
//! Without policies nothing of this is entered: the port's batch is the shard's, and the mode is examined once a batch and
//! once for each row of operations that ended. While one volume alone is busy and nothing limits it, the gate follows only
//! some of its operations, for their costs; the others are counted beside it (`shard/alone.rs`).

use super::alone::Alone;
use super::dispatch::{Counted, ShardOp, ShardPort, Taken, finish};
use super::lifecycle::Task;
use super::state::Shard;
use block::{ErrorKind, IoError};
use qos::{Costs, Due, Gate, Kind, Request, Tenant};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// Time between two ticks of the gate, in nanoseconds.
const TICK_NS: u64 = 20_000_000;

/// Which way operations go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Past the gate: the pool has no policies.
    Off,
    /// Past the gate and counted beside it, as long as they are this volume's.
    Alone(u32),
    /// Through the gate.
    On,
}

impl Mode {
    fn of(is_needed: bool) -> Self {
        match is_needed {
            true => Self::On,
            false => Self::Off,
        }
    }
}

/// A shard's gate, and its waiters.
pub(crate) struct Entrance {
    mode: Cell<Mode>,
    alone: Alone,
    is_ticking: Cell<bool>,
    gate: RefCell<Gate<ShardOp>>,
    /// The task that serves the port, while it is idle.
    waker: Cell<Option<Waker>>,
    /// Arrivals that do not pass immediately, kept between batches to reuse the memory.
    arrived: RefCell<VecDeque<ShardOp>>,
}

impl Entrance {
    /// That of the shard with this number, through which everything passes.
    pub fn new(shard: usize) -> Self {
        Self {
            mode: Cell::new(Mode::Off),
            alone: Alone::default(),
            is_ticking: Cell::new(false),
            gate: RefCell::new(Gate::new(shard)),
            waker: Cell::new(None),
            arrived: RefCell::default(),
        }
    }

    /// Passes the gate the sums of operations that passed and ended beside it.
    fn settle(&self, gate: &mut Gate<ShardOp>) {
        gate.begin_alone(self.alone.take_passed());
        if let Some(ended) = self.alone.take_ended() {
            gate.end_alone(ended);
        }
    }

    /// Has the gate follow all operations again, from `now_ns` on.
    fn leave_alone(&self, gate: &mut Gate<ShardOp>, now_ns: u64) {
        if let Mode::Alone(_) = self.mode.get() {
            self.settle(gate);
            gate.resume(now_ns);
            self.mode.set(Mode::On);
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// See [`Shard::step_aside`].
pub(crate) struct Aside<'a>(Option<&'a Entrance>);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some(entrance) = self.0 {
            entrance.gate.borrow_mut().come_back();
        }
    }
}

/// The gate's request for an operation; `None` for those that are never held.
fn request(volume: u32, kind: block::OpKind, bytes: u64) -> Option<Request> {
    Kind::of(kind).map(|kind| Request {
        volume,
        kind,
        bytes,
    })
}

impl Shard {
    /// Which volumes have which policies from now on.
    pub fn set_tenants(&self, of: &Arc<BTreeMap<u32, Arc<Tenant>>>) {
        let entrance = &self.entrance;
        let mut gate = entrance.gate.borrow_mut();
        entrance.leave_alone(&mut gate, self.handle.seen_ns());
        gate.set_tenants(of.clone());
        let is_needed = gate.is_needed() || entrance.is_ticking.get();
        entrance.mode.set(Mode::of(is_needed));
        drop(gate);
        entrance.wake();
    }

    /// Learned costs of operations.
    pub fn costs(&self) -> Costs {
        self.entrance.gate.borrow().costs().clone()
    }

    /// Takes what is to be done from `port`.
    pub(super) fn poll_take(
        self: &Rc<Self>,
        port: &ShardPort,
        waker: &Waker,
        into: &mut VecDeque<ShardOp>,
    ) -> Poll<Taken> {
        match self.entrance.mode.get() {
            Mode::Off => port.poll_take(waker, into),
            Mode::Alone(volume) => self.poll_alone(volume, port, waker, into),
            Mode::On => self.poll_gate(None, port, waker, into),
        }
    }

    fn poll_alone(
        self: &Rc<Self>,
        volume: u32,
        port: &ShardPort,
        waker: &Waker,
        into: &mut VecDeque<ShardOp>,
    ) -> Poll<Taken> {
        let taken = port.poll_take(waker, into);
        match taken {
            Poll::Ready(taken) if !into.is_empty() => {
                let is_its = |op: &ShardOp| op.volume == volume;
                let counts = |op: &&ShardOp| Kind::of(op.op.kind).is_some();
                if into.iter().all(is_its)
                    && self.entrance.alone.pass(into.iter().filter(counts).count())
                {
                    return Poll::Ready(taken);
                }
                let mut gate = self.entrance.gate.borrow_mut();
                self.entrance.leave_alone(&mut gate, self.handle.seen_ns());
                drop(gate);
                self.poll_gate(Some(taken), port, waker, into)
            }
            _ => taken,
        }
    }

    /// `taken`: what is in `into` already was taken from the port, and this came of it.
    fn poll_gate(
        self: &Rc<Self>,
        mut taken: Option<Taken>,
        port: &ShardPort,
        waker: &Waker,
        into: &mut VecDeque<ShardOp>,
    ) -> Poll<Taken> {
        // The loop examines the clock in each of its turns.
        let now = self.handle.seen_ns();
        let entrance = &self.entrance;
        let mut gate = entrance.gate.borrow_mut();
        gate.begin_turn(self.handle.awake_ns());
        loop {
            // Who is alone takes as if there were no gate.
            let taken = match (taken.take(), gate.is_one_alone()) {
                (Some(taken), _) => Poll::Ready(taken),
                (None, true) => port.poll_take(waker, into),
                (None, false) => port.poll_take_all(waker, into),
            };
            if taken == Poll::Ready(Taken::Closed) {
                let held = gate.take_all();
                drop(gate);
                for op in held {
                    let closed = IoError::new(ErrorKind::Gone, "the pool is closed");
                    finish(op, Err(closed), Vec::new());
                }
                return taken;
            }
            if taken.is_pending() && !gate.can_release(now) {
                entrance.waker.set(Some(waker.clone()));
                return Poll::Pending;
            }
            let is_like = |one: &ShardOp, other: &ShardOp| {
                one.volume == other.volume
                    && one.op.kind == other.op.kind
                    && one.op.len == other.op.len
            };
            let asks = |op: &ShardOp| request(op.volume, op.op.kind, op.op.len);
            let alone = gate.pass_alone(into.iter(), is_like, asks);
            if alone > 0 && alone == into.len() {
                if let Some(last) = into.back()
                    && entrance.alone.follow(alone)
                {
                    let most_ns = gate.max_latency_ns(last.volume);
                    entrance.alone.start(most_ns);
                    entrance.mode.set(Mode::Alone(last.volume));
                }
                return taken;
            }
            entrance.alone.is_interrupted();
            self.let_in(&mut gate, into, alone, now);
            gate.release(now, |op| into.push_back(op));
            if !into.is_empty() {
                let more = gate.can_release(now) || taken == Poll::Ready(Taken::Long);
                return Poll::Ready(if more { Taken::Long } else { Taken::All });
            }
            if taken.is_pending() {
                entrance.waker.set(Some(waker.clone()));
                return Poll::Pending;
            }
            // All of it is held, and the port does not know yet that a task waits.
        }
    }

    /// Leaves operations in `into` that pass immediately, the first `alone` of which are known, and passes the rest to the gate.
    fn let_in(
        self: &Rc<Self>,
        gate: &mut Gate<ShardOp>,
        into: &mut VecDeque<ShardOp>,
        alone: usize,
        now_ns: u64,
    ) {
        if into.is_empty() {
            return;
        }
        self.start_ticking(gate, now_ns);
        let passes = |gate: &mut Gate<ShardOp>, op: &ShardOp| {
            let request = request(op.volume, op.op.kind, op.op.len);
            request.is_none_or(|request| gate.admit(request, now_ns))
        };
        let asked = into.iter().skip(alone);
        let passed = alone + asked.take_while(|op| passes(gate, op)).count();
        if passed == into.len() {
            return;
        }
        let mut arrived = self.entrance.arrived.borrow_mut();
        arrived.extend(into.drain(passed..));
        let mut is_asked = true;
        for op in arrived.drain(..) {
            match request(op.volume, op.op.kind, op.op.len) {
                // The first one was asked about, and did not pass.
                Some(request) if std::mem::take(&mut is_asked) => gate.hold(request, op, now_ns),
                Some(request) => match gate.admit(request, now_ns) {
                    true => into.push_back(op),
                    false => gate.hold(request, op, now_ns),
                },
                None => into.push_back(op),
            }
        }
    }

    fn start_ticking(self: &Rc<Self>, gate: &mut Gate<ShardOp>, now_ns: u64) {
        if self.entrance.is_ticking.replace(true) {
            return;
        }
        gate.start(now_ns);
        let task = Task::begin(self.clone());
        self.handle.spawn(async move { task.tick_gate().await });
    }

    async fn tick_gate(&self) {
        let entrance = &self.entrance;
        let mut next_ns = self.handle.now_ns() + TICK_NS;
        loop {
            let now_ns = self.handle.now_ns();
            let look_ns = entrance.gate.borrow().next_look_ns(now_ns);
            let until_ns = look_ns.map_or(next_ns, |look_ns| look_ns.min(next_ns));
            self.handle.sleep(until_ns.saturating_sub(now_ns)).await;
            let mut gate = entrance.gate.borrow_mut();
            let now_ns = self.handle.now_ns();
            let is_tick = now_ns >= next_ns;
            entrance.settle(&mut gate);
            let goes_on = !is_tick || gate.tick(now_ns, self.handle.slept_ns());
            if is_tick {
                next_ns = now_ns + TICK_NS;
                if gate.is_hurt() {
                    self.upkeep.hurt(now_ns);
                }
            }
            if gate.can_release(now_ns) {
                entrance.wake();
            }
            if !goes_on || self.lifecycle.is_closing() {
                entrance.is_ticking.set(false);
                entrance.leave_alone(&mut gate, now_ns);
                entrance.mode.set(Mode::of(gate.is_needed()));
                return;
            }
        }
    }

    /// Whether operations are due something, as the pool has policies.
    #[inline]
    pub(crate) fn has_policies(&self) -> bool {
        self.entrance.mode.get() != Mode::Off
    }

    /// A host's operation waits for a slow drive or for space until this is dropped: it keeps the shard
    /// from nothing meanwhile, so another operation may pass in its place.
    pub(crate) fn step_aside(&self) -> Aside<'_> {
        if !self.has_policies() {
            return Aside(None);
        }
        let mut gate = self.entrance.gate.borrow_mut();
        gate.step_aside();
        if gate.can_release(self.handle.seen_ns()) {
            self.entrance.wake();
        }
        Aside(Some(&self.entrance))
    }

    /// Scheduling parameters of a volume's operation that starts now: `None` without policies.
    pub(crate) fn due(&self, volume: u32) -> Due {
        match self.has_policies() {
            true => {
                let mut gate = self.entrance.gate.borrow_mut();
                gate.due(volume, self.handle.seen_ns())
            }
            false => Due::NONE,
        }
    }

    /// `count` operations like this have ended, each of which took so long.
    #[inline]
    pub(crate) fn note_ended(&self, of: Counted, count: u64, took_ns: u64, now_ns: u64) {
        match self.entrance.mode.get() {
            Mode::Off => {}
            Mode::Alone(volume) if volume == of.volume => self.end_alone(of, count, took_ns),
            _ => self.leave_gate(of, count, took_ns, now_ns),
        }
    }

    fn end_alone(&self, of: Counted, count: u64, took_ns: u64) {
        let entrance = &self.entrance;
        if let Some(request) = request(of.volume, of.kind, of.len)
            && !entrance.alone.end(request, count, took_ns)
        {
            entrance.settle(&mut entrance.gate.borrow_mut());
            entrance.alone.end(request, count, took_ns);
        }
    }

    fn leave_gate(&self, of: Counted, count: u64, took_ns: u64, now_ns: u64) {
        let Some(request) = request(of.volume, of.kind, of.len) else {
            return;
        };
        let mut gate = self.entrance.gate.borrow_mut();
        gate.done(request, count, took_ns, now_ns);
        if gate.can_release(now_ns) {
            self.entrance.wake();
        }
    }
}
