//! The shards of a schedule, the hosts that use them, and time.

use super::Tally;
use super::draw::{Habit, MS, Plan, Spread};
use super::oracle::Oracle;
use crate::random::Random;
use qos::{Gate, Request, Tenant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

/// Time between two ticks of a gate, in nanoseconds.
const TICK_NS: u64 = 20 * MS;
/// Turns of a gate in one moment, after which it never ends.
const TURNS: usize = 100_000;
/// Nanoseconds after which all that was sent has to have ended.
const ENDS_NS: u64 = 300_000 * MS;
/// A paced host has at most this many operations in flight.
const PACED_DEPTH: usize = 4;

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub volume: usize,
    pub shard: usize,
    /// Its number among those of its volume at this shard.
    pub number: u64,
    pub sent_ns: u64,
    pub passed_ns: u64,
    request: Request,
}

enum Event {
    Ended(Op),
    Tick(usize),
    Send(usize),
    Pause(usize, bool),
    Change(usize),
}

struct Shard {
    gate: Gate<Op>,
    is_on: bool,
    is_ticking: bool,
    /// Passed, and not served yet.
    queue: VecDeque<Op>,
    serving: u64,
}

struct Host {
    is_on: bool,
    under_way: usize,
    sent: u64,
    numbers: Vec<u64>,
}

/// Everything of a schedule.
pub struct World {
    plan: Plan,
    shards: Vec<Shard>,
    hosts: Vec<Host>,
    tenants: BTreeMap<u32, Arc<Tenant>>,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Events by their places in the heap's entries, and places that are free.
    what: Vec<Option<Event>>,
    free: Vec<usize>,
    count: u64,
    now_ns: u64,
    random: Random,
    oracle: Oracle,
}

type Result<T> = std::result::Result<T, String>;

impl World {
    /// That of a plan.
    pub fn new(plan: Plan) -> Self {
        let shard = |number| Shard {
            gate: Gate::new(number),
            is_on: false,
            is_ticking: false,
            queue: VecDeque::new(),
            serving: 0,
        };
        let host = || Host {
            is_on: true,
            under_way: 0,
            sent: 0,
            numbers: vec![0; plan.shards],
        };
        Self {
            shards: (0..plan.shards).map(shard).collect(),
            hosts: plan.volumes.iter().map(|_| host()).collect(),
            tenants: BTreeMap::new(),
            events: BinaryHeap::new(),
            what: Vec::new(),
            free: Vec::new(),
            count: 0,
            // Clocks do not begin at zero.
            now_ns: 1_000 * MS,
            random: Random::new(plan.length_ns ^ plan.base_ns),
            oracle: Oracle::new(&plan, 1_000 * MS),
            plan,
        }
    }

    fn at(&mut self, ns: u64, event: Event) {
        self.count += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.what.push(None);
            self.what.len() - 1
        });
        self.what[place] = Some(event);
        self.events.push(Reverse((ns, self.count, place)));
    }

    /// Runs it.
    ///
    /// # Errors
    /// The oracle's fault.
    pub fn run(mut self) -> Result<Tally> {
        let end_ns = self.now_ns + self.plan.length_ns;
        self.give_policies();
        for at in 0..self.plan.changes.len() {
            let ns = self.now_ns + self.plan.changes[at].at_ns;
            self.at(ns, Event::Change(at));
        }
        for volume in 0..self.hosts.len() {
            if let Habit::Bursts(_, on_ns, _) = self.plan.volumes[volume].habit {
                self.at(self.now_ns + on_ns, Event::Pause(volume, true));
            }
            self.send(volume)?;
        }
        while let Some(Reverse((ns, _, place))) = self.events.pop() {
            let Some(event) = self.what[place].take() else {
                continue;
            };
            self.free.push(place);
            self.now_ns = ns;
            if ns > end_ns + ENDS_NS {
                return Err("operations are held for ever".to_owned());
            }
            if ns >= end_ns && !self.oracle.is_over() {
                self.oracle.judge(&self.plan, ns)?;
            }
            self.on(event)?;
        }
        self.end()
    }

    fn on(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Ended(op) => self.ended(op),
            Event::Tick(shard) => self.tick(shard),
            Event::Send(volume) => self.send(volume),
            Event::Pause(volume, pauses) => self.pause(volume, pauses),
            Event::Change(at) => self.change(at),
        }
    }

    fn give_policies(&mut self) {
        for (id, volume) in (0..).zip(&self.plan.volumes) {
            let Some(policy) = &volume.policy else {
                self.tenants.remove(&id);
                continue;
            };
            let known = self.tenants.get(&id);
            if known.is_none_or(|known| known.policy() != policy) {
                let tenant = Tenant::new(Arc::new(policy.clone()), self.plan.shards);
                if let Some(known) = known {
                    tenant.resume(known, true);
                }
                self.tenants.insert(id, Arc::new(tenant));
            }
        }
        let all = Arc::new(self.tenants.clone());
        for shard in &mut self.shards {
            shard.gate.set_tenants(all.clone());
            shard.is_on = shard.gate.is_needed() || shard.is_ticking;
        }
    }

    fn change(&mut self, at: usize) -> Result<()> {
        let change = self.plan.changes[at].clone();
        self.plan.volumes[change.volume].policy = change.policy;
        self.give_policies();
        self.oracle.changed(&self.plan, self.now_ns);
        (0..self.shards.len()).try_for_each(|shard| self.pump(shard))
    }

    fn pause(&mut self, volume: usize, pauses: bool) -> Result<()> {
        let Habit::Bursts(_, on_ns, off_ns) = self.plan.volumes[volume].habit else {
            return Ok(());
        };
        if self.oracle.is_over() {
            return Ok(());
        }
        self.hosts[volume].is_on = !pauses;
        let next = if pauses { off_ns } else { on_ns };
        self.at(self.now_ns + next, Event::Pause(volume, !pauses));
        self.send(volume)
    }

    /// Sends what a host sends now.
    fn send(&mut self, volume: usize) -> Result<()> {
        let depth = match self.plan.volumes[volume].habit {
            Habit::Flood(depth) | Habit::Bursts(depth, _, _) => depth,
            Habit::Paced(every_ns) => {
                if !self.oracle.is_over() {
                    self.at(self.now_ns + every_ns, Event::Send(volume));
                }
                let under_way = self.hosts[volume].under_way;
                (under_way + 1).min(PACED_DEPTH)
            }
        };
        self.fill(volume, depth)
    }

    fn fill(&mut self, volume: usize, depth: usize) -> Result<()> {
        while self.hosts[volume].is_on
            && !self.oracle.is_over()
            && self.hosts[volume].under_way < depth
        {
            let of = &self.plan.volumes[volume];
            let host = &mut self.hosts[volume];
            let shard = match of.spread {
                Spread::All => host.sent as usize % self.shards.len(),
                Spread::One(shard) => shard,
            };
            host.sent += 1;
            host.under_way += 1;
            let op = Op {
                volume,
                shard,
                number: host.numbers[shard],
                sent_ns: self.now_ns,
                passed_ns: 0,
                request: Request {
                    volume: volume as u32,
                    kind: of.kind,
                    bytes: of.bytes,
                },
            };
            host.numbers[shard] += 1;
            self.arrive(op)?;
        }
        Ok(())
    }

    fn arrive(&mut self, op: Op) -> Result<()> {
        let now = self.now_ns;
        let shard = &mut self.shards[op.shard];
        if !shard.is_on {
            return self.pass(op);
        }
        if !shard.is_ticking {
            shard.is_ticking = true;
            shard.gate.start(now);
            self.at(now + TICK_NS, Event::Tick(op.shard));
        }
        let gate = &mut self.shards[op.shard].gate;
        gate.begin_turn(now);
        let alone = gate.pass_alone(std::iter::once(op.request), |a, b| a == b, Some);
        if alone == 1 || gate.admit(op.request, now) {
            self.pass(op)?;
        } else {
            gate.hold(op.request, op, now);
            self.oracle.held(op.volume, op.shard);
        }
        self.pump(op.shard)
    }

    /// Turns, until the gate lets nothing more pass.
    fn pump(&mut self, shard: usize) -> Result<()> {
        let now = self.now_ns;
        for _ in 0..TURNS {
            let mut out = Vec::new();
            let gate = &mut self.shards[shard].gate;
            gate.begin_turn(now);
            gate.release(now, |op| out.push(op));
            let more = gate.can_release(now);
            for op in out {
                self.oracle.released(op.volume, op.shard);
                self.pass(op)?;
            }
            if !more {
                return self.oracle.conserves_work(
                    shard,
                    self.shards[shard].serving,
                    &self.tenants,
                    now,
                );
            }
        }
        Err(format!(
            "shard {shard}'s gate could release for {TURNS} turns of one moment"
        ))
    }

    fn pass(&mut self, mut op: Op) -> Result<()> {
        op.passed_ns = self.now_ns;
        self.oracle.passed(&op, self.now_ns)?;
        self.shards[op.shard].queue.push_back(op);
        self.serve(op.shard);
        Ok(())
    }

    fn serve(&mut self, shard: usize) {
        while self.shards[shard].serving < self.plan.channels {
            let Some(op) = self.shards[shard].queue.pop_front() else {
                return;
            };
            self.shards[shard].serving += 1;
            let request = op.request;
            let mean = self.plan.service_ns(request.kind, request.bytes);
            let service = mean / 2 + self.random.below(mean);
            self.at(self.now_ns + service, Event::Ended(op));
        }
    }

    fn ended(&mut self, op: Op) -> Result<()> {
        let now = self.now_ns;
        self.shards[op.shard].serving -= 1;
        self.serve(op.shard);
        self.hosts[op.volume].under_way -= 1;
        self.oracle.ended();
        let shard = &mut self.shards[op.shard];
        if shard.is_on {
            shard.gate.done(op.request, 1, now - op.passed_ns, now);
        }
        if !matches!(self.plan.volumes[op.volume].habit, Habit::Paced(_)) {
            self.send(op.volume)?;
        }
        self.pump(op.shard)
    }

    fn tick(&mut self, number: usize) -> Result<()> {
        let now = self.now_ns;
        let shard = &mut self.shards[number];
        let goes_on = shard.gate.tick(now, now);
        if goes_on {
            self.at(now + TICK_NS, Event::Tick(number));
        } else {
            shard.is_ticking = false;
            shard.is_on = shard.gate.is_needed();
        }
        self.oracle.ticked(number, goes_on)?;
        self.oracle
            .conserves_budgets(&self.tenants, self.plan.shards)?;
        self.pump(number)
    }

    /// All has ended that was sent: nothing may be left, and no tick continues for it.
    fn end(self) -> Result<Tally> {
        let left: usize = self.hosts.iter().map(|host| host.under_way).sum();
        if left > 0 {
            return Err(format!("{left} operations never ended"));
        }
        Ok(self.oracle.tally())
    }
}
