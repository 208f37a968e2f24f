//! A shard whose loop also runs the hosts' front ends: their work for an operation, before and after it, takes part of
//! the same time as the shard does, and no gate sees it.
//!
//! One volume was promised a minimum. Beside it are many sessions of few operations each, dearer at the front end than in
//! the shard: without a policy each of them has its turn of the loop, and the volume is one of hundreds. Its operations
//! mostly wait in its ring or socket until the loop looks there, and not at the gate. Its host is one of three kinds:
//!
//! - a **deep** one keeps many operations in flight, and the minimum is a part of what it has alone: it has that in nearly
//!   every window of 100 ms;
//! - a **shallow** one waits for few operations at a time and cannot reach its minimum: it has nearly what it has alone;
//! - a **slow** one requests less than its minimum, whatever others do: they lose little by it.
//!
//! With all of them no other volume starves, unused service is available to the others, and when it is idle, they have everything
//! soon after.

use super::Tally;
use super::draw::{MS, SECOND};
use crate::random::Random;
use format::QosPolicyConfig;
use qos::{Gate, Kind, Request, Tenant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

const TICK_NS: u64 = 20 * MS;
/// Length of a window that is judged, in ticks.
const WINDOW: usize = 5;
/// Rounds of ready tasks before the loop examines what has arrived.
const ROUNDS: usize = 4;
/// Reads that a shard counts together.
const TOGETHER: usize = 8;
/// The volume with the minimum; it is the first.
const PROMISED: usize = 0;
/// In some, one of level 2.
const NEXT: usize = 1;

/// A volume with a session of its own.
#[derive(Clone, Debug)]
struct Session {
    policy: Option<QosPolicyConfig>,
    depth: usize,
    bytes: u64,
    /// Time of an operation: of the loop at the front end, of the loop in the shard, and of the client between an answer
    /// and the next request, in nanoseconds.
    front_ns: u64,
    shard_ns: u64,
    client_ns: u64,
    /// Time between two requests of a host that waits for no answer.
    every_ns: Option<u64>,
    /// Requests that arrived and were not taken, and answers that were not sent.
    arrived: usize,
    answers: usize,
    is_ready: bool,
    ended: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Deep,
    Shallow,
    Slow,
}

/// A shared loop, drawn from a seed.
struct Plan {
    sessions: Vec<Session>,
    host: Host,
    /// Part of what the volume has alone that it is promised, in per cent.
    promised: u64,
    level: u8,
}

fn plan(seed: u64) -> Plan {
    let random = &mut Random::new(seed ^ 0x5348_4152_4544);
    let shard_ns = random.within(800..=4_000);
    let session = |depth, bytes, front_ns, shard_ns, client_ns| Session {
        policy: None,
        depth,
        bytes,
        front_ns,
        shard_ns,
        client_ns,
        every_ns: None,
        arrived: depth,
        answers: 0,
        is_ready: false,
        ended: 0,
    };
    let host = *random.pick(&[Host::Deep, Host::Deep, Host::Shallow, Host::Slow]);
    let (depth, client_us) = match host {
        Host::Deep => (random.within(32..=128), random.within(5..=40)),
        Host::Shallow => (random.within(1..=4), random.within(50..=300)),
        Host::Slow => (1, 0),
    };
    let front_ns = random.within(300..=3_000);
    let mut sessions = vec![session(
        depth as usize,
        8192,
        front_ns,
        shard_ns,
        client_us * 1_000,
    )];
    if host == Host::Slow {
        sessions[PROMISED].every_ns = Some(random.within(100..=1_000) * 1_000);
    }
    let (count, front_ns) = (random.within(20..=400), random.within(5..=30) * 1_000);
    for _ in 0..count {
        let bytes = *random.pick(&[4096, 4096, 16_384, 65_536]);
        let work = shard_ns / 2 + random.below(shard_ns) + bytes / 16;
        sessions.push(session(
            random.within(1..=4) as usize,
            bytes,
            front_ns / 2 + random.below(front_ns),
            work,
            random.within(5..=100) * 1_000,
        ));
    }
    let with_policies = random.one_in(2);
    for (id, session) in (0..).zip(&mut sessions).skip(1) {
        session.policy = with_policies.then(|| policy(64 + id, 3 + id as u8 % 3, 15));
    }
    // A volume of the next level that requests little, whatever others do, and is promised that.
    if with_policies {
        let next = &mut sessions[NEXT];
        let every_ns = random.within(2_000..=20_000) * 1_000;
        (next.depth, next.every_ns) = (1, Some(every_ns));
        next.policy = Some(policy(2, 2, SECOND / every_ns * 3 / 2));
    }
    Plan {
        sessions,
        host,
        promised: match host {
            Host::Deep => random.within(40..=75),
            Host::Shallow | Host::Slow => 150,
        },
        level: 1,
    }
}

fn policy(id: u32, level: u8, min_iops: u64) -> QosPolicyConfig {
    QosPolicyConfig {
        id,
        level,
        min_iops,
        min_bandwidth: 0,
        max_latency_ns: 0,
        ..format::built_in_policies().next().expect("there are five")
    }
}

#[derive(Clone, Copy)]
struct Op {
    session: usize,
    request: Request,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Session(usize),
    Shard,
}

/// The loop, and everything on it.
struct Loop {
    sessions: Vec<Session>,
    gate: Gate<Op>,
    is_on: bool,
    port: VecDeque<Op>,
    is_shard_ready: bool,
    ready: VecDeque<Task>,
    /// Requests that arrive, by time and session.
    coming: BinaryHeap<Reverse<(u64, usize)>>,
    now_ns: u64,
    awake_ns: u64,
    tick_ns: u64,
    /// When the gate is examined though nothing arrives.
    look_ns: Option<u64>,
    slept_ns: u64,
    stopped: Vec<bool>,
    held: u64,
    operations: u64,
}

impl Loop {
    fn new(sessions: Vec<Session>) -> Self {
        let now_ns = 1_000 * MS;
        let mut of = Self {
            gate: Gate::new(0),
            is_on: false,
            port: VecDeque::new(),
            is_shard_ready: false,
            ready: VecDeque::new(),
            coming: BinaryHeap::new(),
            now_ns,
            awake_ns: now_ns,
            tick_ns: now_ns + TICK_NS,
            look_ns: None,
            slept_ns: 0,
            stopped: vec![true; sessions.len()],
            sessions,
            held: 0,
            operations: 0,
        };
        of.gate.start(now_ns);
        of
    }

    fn give_policies(&mut self) {
        let tenants = (0..).zip(&self.sessions).filter_map(|(id, session)| {
            let policy = session.policy.clone()?;
            Some((id, Arc::new(Tenant::new(Arc::new(policy), 1))))
        });
        let tenants: BTreeMap<u32, Arc<Tenant>> = tenants.collect();
        self.gate.set_tenants(Arc::new(tenants));
        self.is_on = self.gate.is_needed();
    }

    /// A host begins to send, or stops.
    fn switch(&mut self, session: usize, sends: bool) {
        self.stopped[session] = !sends;
        let of = &mut self.sessions[session];
        if sends && of.every_ns.is_some() {
            of.arrived = 0;
            self.coming.push(Reverse((self.now_ns, session)));
        }
        if sends {
            self.wake(session);
        }
    }

    fn wake(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        let takes = session.arrived > 0 && !self.stopped[number];
        if (takes || session.answers > 0) && !std::mem::replace(&mut session.is_ready, true) {
            self.ready.push_back(Task::Session(number));
        }
    }

    fn wake_shard(&mut self) {
        if !std::mem::replace(&mut self.is_shard_ready, true) {
            self.ready.push_back(Task::Shard);
        }
    }

    fn serve_session(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        session.is_ready = false;
        let answers = std::mem::take(&mut session.answers);
        self.now_ns += session.front_ns / 2 * answers as u64;
        if session.every_ns.is_none() {
            let back = Reverse((self.now_ns + session.client_ns, number));
            self.coming.extend(std::iter::repeat_n(back, answers));
        }
        if self.stopped[number] {
            return;
        }
        let taken = std::mem::take(&mut session.arrived);
        self.now_ns += session.front_ns / 2 * taken as u64;
        let request = Request {
            volume: number as u32,
            kind: Kind::Read,
            bytes: session.bytes,
        };
        let op = Op {
            session: number,
            request,
        };
        self.port.extend(std::iter::repeat_n(op, taken));
        if taken > 0 {
            self.wake_shard();
        }
    }

    /// As the engine's `shard/qos.rs` and `shard/serve.rs` do it.
    fn serve_shard(&mut self) {
        self.is_shard_ready = false;
        let mut batch = Vec::new();
        if self.is_on {
            self.gate.begin_turn(self.awake_ns);
            let alone =
                self.gate
                    .pass_alone(self.port.iter().map(|op| op.request), |a, b| a == b, Some);
            batch.extend(self.port.drain(..alone));
            for op in self.port.drain(..) {
                match self.gate.admit(op.request, self.now_ns) {
                    true => batch.push(op),
                    false => {
                        self.held += 1;
                        self.gate.hold(op.request, op, self.now_ns);
                    }
                }
            }
            self.gate.release(self.now_ns, |op| batch.push(op));
        } else {
            batch.extend(self.port.drain(..));
        }
        let began_ns = self.now_ns;
        for row in batch.chunk_by(|one, next| one.session == next.session) {
            for some in row.chunks(TOGETHER) {
                let session = &mut self.sessions[some[0].session];
                self.now_ns += session.shard_ns * some.len() as u64;
                session.answers += some.len();
                session.ended += some.len() as u64;
                if self.is_on {
                    let took_ns = self.now_ns - began_ns;
                    self.gate
                        .done(some[0].request, some.len() as u64, took_ns, self.now_ns);
                }
                self.wake(some[0].session);
            }
        }
        self.operations += batch.len() as u64;
        self.look();
    }

    /// Asks the gate when it is to be examined next.
    fn look(&mut self) {
        self.look_ns = None;
        if !self.is_on {
            return;
        }
        if self.gate.can_release(self.now_ns) {
            self.wake_shard();
        } else {
            self.look_ns = self.gate.next_look_ns(self.now_ns);
        }
    }

    /// Runs for so long.
    fn run(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        while self.now_ns < end_ns {
            self.take_what_came();
            for _ in 0..ROUNDS {
                for _ in 0..self.ready.len() {
                    match self.ready.pop_front() {
                        Some(Task::Session(number)) => self.serve_session(number),
                        Some(Task::Shard) => self.serve_shard(),
                        None => {}
                    }
                }
            }
            // Requests to the kernel.
            self.now_ns += 2_000;
            if self.ready.is_empty() {
                let next = self.coming.peek().map_or(u64::MAX, |Reverse((ns, _))| *ns);
                let next = next.min(self.look_ns.unwrap_or(u64::MAX));
                let next = next.min(self.tick_ns).min(end_ns).max(self.now_ns);
                self.slept_ns += next - self.now_ns;
                self.now_ns = next;
                self.awake_ns = next;
            }
        }
    }

    fn take_what_came(&mut self) {
        while let Some(Reverse((ns, number))) = self.coming.peek().copied()
            && ns <= self.now_ns
        {
            self.coming.pop();
            self.sessions[number].arrived += 1;
            if let Some(every_ns) = self.sessions[number]
                .every_ns
                .filter(|_| !self.stopped[number])
            {
                self.coming.push(Reverse((ns + every_ns, number)));
            }
            self.wake(number);
        }
        if self.now_ns >= self.tick_ns {
            self.tick_ns = self.now_ns + TICK_NS;
            if self.is_on {
                self.gate.tick(self.now_ns, self.slept_ns);
                self.look();
            }
        }
        if self.look_ns.is_some_and(|at| at <= self.now_ns) {
            self.look_ns = None;
            self.wake_shard();
        }
    }

    fn take_ended(&mut self) -> [u64; 3] {
        let taken: Vec<u64> = (self.sessions.iter_mut())
            .map(|session| std::mem::take(&mut session.ended))
            .collect();
        [taken[PROMISED], taken[NEXT..].iter().sum(), taken[NEXT]]
    }

    /// Operations of the volume, of all others, and of the next one of them, per second, in each of a number of windows.
    fn windows(&mut self, count: usize) -> Vec<[u64; 3]> {
        self.take_ended();
        let window_ns = TICK_NS * WINDOW as u64;
        let windows = (0..count).map(|_| {
            let from_ns = self.now_ns;
            self.run(window_ns);
            let took_ns = self.now_ns - from_ns;
            self.take_ended().map(|ended| ended * SECOND / took_ns)
        });
        windows.collect()
    }
}

fn mean(windows: &[[u64; 3]], of: usize) -> u64 {
    windows.iter().map(|window| window[of]).sum::<u64>() / windows.len() as u64
}

/// Runs the one of a seed.
///
/// # Errors
/// Its fault.
pub fn run(seed: u64) -> Result<Tally, String> {
    let mut plan = plan(seed);
    let mut alone = Loop::new(plan.sessions.clone());
    alone.switch(PROMISED, true);
    alone.run(50 * MS);
    let alone = mean(&alone.windows(3), PROMISED);
    let floor = alone * plan.promised / 100;
    plan.sessions[PROMISED].policy = Some(policy(1, plan.level, floor));

    let mut of = Loop::new(plan.sessions);
    let all = of.sessions.len();
    (0..all).for_each(|session| of.switch(session, true));
    of.run(200 * MS);
    let without = of.windows(5);
    of.give_policies();
    of.run(2_500 * MS);
    let slept_ns = of.slept_ns;
    let with = of.windows(40);
    let idle = (of.slept_ns - slept_ns) as f64 / (40 * WINDOW as u64 * TICK_NS) as f64;
    of.switch(PROMISED, false);
    // What the next level was kept waiting for is done first.
    of.run(2_500 * MS);
    let after = of.windows(20);
    let met = (with.iter())
        .filter(|window| window[PROMISED] >= floor)
        .count();
    let [got, others, next] = [0, 1, 2].map(|of| mean(&with, of));
    let asked = of.sessions[NEXT].every_ns.map(|every_ns| SECOND / every_ns);
    let (before, after) = (mean(&without, 1), mean(&after, 1));
    match plan.host {
        Host::Deep if met * 100 < with.len() * 95 => {
            return Err(format!(
                "the minimum of {floor} was had in {met} of {} windows, and {got} on average",
                with.len()
            ));
        }
        Host::Deep if idle > 0.25 => {
            return Err(format!("the loop is idle for {idle:.2} of the time"));
        }
        Host::Shallow if got * 100 < alone * 85 => {
            return Err(format!("{got} a second of {alone} that it has alone"));
        }
        Host::Slow if others * 100 < before * 80 => {
            return Err(format!(
                "others have {others} a second instead of {before}, and nobody gains by it"
            ));
        }
        Host::Deep | Host::Shallow | Host::Slow => {}
    }
    if asked.is_some_and(|asked| next * 100 < asked * 60) {
        return Err(format!("the next level has {next} a second of {asked:?}"));
    }
    if others * 100 < before {
        return Err(format!("others starve: {others} a second of {before}"));
    }
    if after * 100 < before * 85 {
        return Err(format!(
            "nobody else asks, and others have {after} a second of {before}"
        ));
    }
    Ok(Tally {
        schedules: 1,
        operations: of.operations,
        held: of.held,
        judged: 1,
        scarce: 0,
    })
}
