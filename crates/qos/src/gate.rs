//! Admission at a shard's entry: which operation proceeds, and which is queued for how long.
//!
//! Every volume that is busy has an entry with a queue. What is released next is the held operation with the smallest
//! start tag; an operation's start tag is the larger of the gate's virtual time and its volume's last finish tag, which is
//! that start and the operation's cost divided by the volume's share (start-time fair queueing). A volume that asks for
//! less than its share never waits for long, and what nobody else wants is anyone's.
//!
//! Leaves out: when it is ticked and who carries out what it lets pass (the engine's `shard/qos.rs`).

use super::costs::{CLASSES, Costs, Ended, Kind, class};
use super::due::Due;
use super::service::Report;
use super::shares::{Claim, shares};
use super::tenant::Tenant;
use super::window::{Hurt, Window};
use format::QOS_WEIGHT;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

/// What a shard has to give away, in nanoseconds a second.
const CAPACITY: u64 = 1_000_000_000;
/// Cost of what passes in one turn while several volumes are busy, in nanoseconds, and how many operations at most. Who
/// arrives meanwhile is looked at after it.
const TURN_NS: u64 = 250_000;
const TURN_OPERATIONS: usize = 64;
/// Ticks without work after which a volume's entry is given up: until then two whole windows of 100 ms have been reported
/// as idle.
const IDLE_TICKS: u8 = 15;
/// Operations under way on average with which a volume asks for more than one after the other.
const ASKS: u64 = 4;
/// Virtual time at which it is rebased to zero.
const REBASE: u64 = 1 << 60;

/// What an operation asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The volume.
    pub volume: u32,
    /// What it does.
    pub kind: Kind,
    /// Its length.
    pub bytes: u64,
}

struct Held<T> {
    request: Request,
    since_ns: u64,
    what: T,
}

/// A volume that is busy.
struct Entry<T> {
    tenant: Option<Arc<Tenant>>,
    /// Nanoseconds a second.
    share: u64,
    /// Finish tag of what it was charged for last.
    finish: u64,
    held: VecDeque<Held<T>>,
    /// Its maximum was reached: nothing of it is released before the next tick.
    rests: bool,
    /// For how long the operation was held that was released last, in nanoseconds.
    last_hold_ns: u64,
    /// Since when operations have been held, in this tick.
    holding_ns: u64,
    seen: Report,
    /// Sum of what operations took beneath the gate in this tick, in nanoseconds.
    took_ns: u64,
    idle: u8,
}

impl<T> Entry<T> {
    fn new(tenant: Option<Arc<Tenant>>, share: u64, now_ns: u64) -> Self {
        Self {
            tenant,
            share,
            finish: 0,
            held: VecDeque::new(),
            rests: false,
            last_hold_ns: 0,
            holding_ns: now_ns,
            seen: Report::default(),
            took_ns: 0,
            idle: 0,
        }
    }

    fn allows(&self, now_ns: u64) -> bool {
        let tenant = self.tenant.as_ref();
        tenant.is_none_or(|tenant| tenant.allows(now_ns))
    }
}

/// The gate of one shard. `T` is what is held.
pub struct Gate<T> {
    shard: usize,
    /// Every volume with a policy.
    tenants: BTreeMap<u32, Arc<Tenant>>,
    entries: BTreeMap<u32, Entry<T>>,
    /// Volumes with held operations that do not rest, each once, by the start tag of their first.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    virtual_ns: u64,
    held: usize,
    window: Window,
    costs: Costs,
    ended: [Ended; CLASSES],
    /// What has ended at one moment, by class, and the time since the moment before at which something did.
    together: Vec<(usize, u32)>,
    together_ns: u64,
    /// That moment.
    ended_ns: u64,
    ticked_ns: u64,
    turn: (u64, usize),
    /// In the last tick somebody missed what its policy promises.
    is_hurt: bool,
}

impl<T> Gate<T> {
    /// The gate of shard number `shard` of its pool, through which everything passes.
    pub fn new(shard: usize) -> Self {
        Self {
            shard,
            tenants: BTreeMap::new(),
            entries: BTreeMap::new(),
            queue: BinaryHeap::new(),
            virtual_ns: 0,
            held: 0,
            window: Window::default(),
            costs: Costs::default(),
            ended: [Ended::default(); CLASSES],
            together: Vec::new(),
            together_ns: 0,
            ended_ns: 0,
            ticked_ns: 0,
            turn: (0, 0),
            is_hurt: false,
        }
    }

    /// Which volumes have which policies from now on.
    pub fn set_tenants(&mut self, tenants: BTreeMap<u32, Arc<Tenant>>) {
        self.tenants = tenants;
        for (volume, entry) in &mut self.entries {
            entry.tenant = self.tenants.get(volume).cloned();
        }
        self.share();
    }

    /// Whether there is anything to be kept, or anything is held.
    pub fn is_needed(&self) -> bool {
        !self.tenants.is_empty() || self.held > 0
    }

    /// What operations cost, as far as it was learned.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Whether somebody missed what its policy promises in the last tick, though it asked for it: whatever goes on beside
    /// hosts' operations is to do with less.
    pub fn is_hurt(&self) -> bool {
        self.is_hurt
    }

    /// Operations that are held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held
    }

    /// A new turn begins.
    pub fn begin_turn(&mut self) {
        self.turn = (0, 0);
    }

    fn is_over(&self) -> bool {
        self.entries.len() > 1 && (self.turn.0 >= TURN_NS || self.turn.1 >= TURN_OPERATIONS)
    }

    /// Whether [`Gate::release`] would find something in a new turn, unless it rests.
    pub fn can_release(&self) -> bool {
        !self.queue.is_empty() && self.window.has_room()
    }

    fn entry(&mut self, volume: u32, now_ns: u64) -> &mut Entry<T> {
        let Self {
            entries,
            tenants,
            costs,
            ..
        } = self;
        let busy = entries.len() as u64 + 1;
        entries.entry(volume).or_insert_with(|| {
            let tenant = tenants.get(&volume).cloned();
            let floor = tenant.as_ref().map_or(0, |of| of.floor(4096) as u64);
            let ns = costs.of(class(Kind::Read, 4096));
            // Until the next tick says better: a small part of what each would have of everything.
            let least = CAPACITY / 20 / busy;
            let share = floor.saturating_mul(ns).clamp(least, CAPACITY);
            Entry::new(tenant, share, now_ns)
        })
    }

    /// Whether an operation may pass at once. It counts as under way then, until [`Gate::done`]; else it is to be given
    /// to [`Gate::hold`].
    pub fn admit(&mut self, request: Request, now_ns: u64) -> bool {
        let blocked = self.held > self.resting() || !self.window.has_room() || self.is_over();
        let entry = self.entry(request.volume, now_ns);
        if blocked || !entry.held.is_empty() || !entry.allows(now_ns) {
            return false;
        }
        entry.last_hold_ns = 0;
        self.charge(request, now_ns);
        true
    }

    /// Held operations that nothing but a tick releases.
    fn resting(&self) -> usize {
        match self.queue.is_empty() {
            true => self.held,
            false => 0,
        }
    }

    /// Holds an operation that was not admitted.
    pub fn hold(&mut self, request: Request, what: T, now_ns: u64) {
        let virtual_ns = self.virtual_ns;
        let entry = self.entry(request.volume, now_ns);
        let is_first = entry.held.is_empty();
        entry.held.push_back(Held {
            request,
            since_ns: now_ns,
            what,
        });
        entry.seen.held += 1;
        if is_first {
            entry.holding_ns = now_ns;
            let start = entry.finish.max(virtual_ns);
            let rests = entry.rests;
            if !rests {
                self.queue.push(Reverse((start, request.volume)));
            }
        }
        self.held += 1;
    }

    /// Counts an operation as under way and charges its volume for it.
    fn charge(&mut self, request: Request, now_ns: u64) {
        let cost = self.costs.of(class(request.kind, request.bytes));
        let virtual_ns = self.virtual_ns;
        let entry = self.entry(request.volume, now_ns);
        if let Some(tenant) = &entry.tenant {
            tenant.take(request.bytes, now_ns);
        }
        let start = entry.finish.max(virtual_ns);
        let takes = u128::from(cost) * u128::from(CAPACITY) / u128::from(entry.share.max(1));
        entry.finish = start.saturating_add(takes as u64);
        entry.seen.cost_ns += cost;
        entry.idle = 0;
        self.virtual_ns = start;
        self.turn = (self.turn.0 + cost, self.turn.1 + 1);
        if self.window.under_way() == 0 {
            self.end_moment();
            self.ended_ns = now_ns;
        }
        self.window.enter();
    }

    /// What an operation of a volume is due that has just passed.
    pub fn due(&self, volume: u32, now_ns: u64) -> Due {
        let Some(tenant) = self.tenants.get(&volume) else {
            return Due::NONE;
        };
        let entry = self.entries.get(&volume);
        let arrived_ns = now_ns.saturating_sub(entry.map_or(0, |entry| entry.last_hold_ns));
        let policy = tenant.policy();
        let deadline_ns = match policy.max_latency_ns {
            0 => u64::MAX,
            most_ns => arrived_ns.saturating_add(most_ns),
        };
        Due::new(policy.level, deadline_ns)
    }

    /// Releases what may go on in this turn; it counts as under way from then on.
    pub fn release(&mut self, now_ns: u64, mut out: impl FnMut(T)) {
        while self.window.has_room() && !self.is_over() {
            let Some(Reverse((_, volume))) = self.queue.pop() else {
                return;
            };
            let Some(entry) = self.entries.get_mut(&volume) else {
                continue;
            };
            if !entry.allows(now_ns) {
                entry.rests = true;
                continue;
            }
            let Some(next) = entry.held.pop_front() else {
                continue;
            };
            entry.last_hold_ns = now_ns.saturating_sub(next.since_ns);
            if entry.held.is_empty() {
                entry.seen.held_ns += now_ns.saturating_sub(entry.holding_ns);
            }
            let has_more = !entry.held.is_empty();
            self.held -= 1;
            self.charge(next.request, now_ns);
            if has_more {
                let finish = self.entry(volume, now_ns).finish;
                self.queue.push(Reverse((finish, volume)));
            }
            out(next.what);
        }
    }

    /// `count` operations that are alike have ended, each of which took so long since it passed.
    pub fn done(&mut self, request: Request, count: u64, took_ns: u64, now_ns: u64) {
        self.window.leave(count as usize);
        if now_ns > self.ended_ns {
            self.end_moment();
            self.together_ns = now_ns - self.ended_ns;
            self.ended_ns = now_ns;
        }
        let class = class(request.kind, request.bytes);
        self.together.push((class, count as u32));
        let Some(entry) = self.entries.get_mut(&request.volume) else {
            return;
        };
        entry.seen.operations += count;
        entry.seen.bytes += count * request.bytes;
        entry.took_ns = entry.took_ns.saturating_add(took_ns.saturating_mul(count));
        let most = entry
            .tenant
            .as_ref()
            .map_or(0, |of| of.policy().max_latency_ns);
        if most > 0 && took_ns.saturating_add(entry.last_hold_ns) > most {
            entry.seen.late += count;
        }
    }

    /// What ended at one moment cost the time since the moment before, each its part by what is known of its cost.
    fn end_moment(&mut self) {
        let ns = std::mem::take(&mut self.together_ns);
        let known = |(class, count): &(usize, u32)| self.costs.of(*class) * u64::from(*count);
        let sum: u64 = self.together.iter().map(known).sum();
        for (class, count) in self.together.drain(..) {
            let part = self.costs.of(class) * u64::from(count);
            let ended = &mut self.ended[class];
            ended.count += count;
            ended.ns += (u128::from(ns) * u128::from(part) / u128::from(sum.max(1))) as u64;
        }
    }

    /// Ticks begin: nothing was counted before.
    pub fn start(&mut self, now_ns: u64) {
        (self.ticked_ns, self.ended_ns) = (now_ns, now_ns);
    }

    /// Gives up everything that is held.
    pub fn take_all(&mut self) -> Vec<T> {
        self.queue.clear();
        self.held = 0;
        let entries = self.entries.values_mut();
        let held = entries.flat_map(|entry| entry.held.drain(..));
        held.map(|held| held.what).collect()
    }

    /// A tick has passed: reports what volumes attained, updates the cost estimates, and recomputes the shares. False when
    /// nothing has been going on for a while, so that no tick is needed before the next operation.
    pub fn tick(&mut self, now_ns: u64) -> bool {
        let length = now_ns.saturating_sub(self.ticked_ns).max(1);
        self.ticked_ns = now_ns;
        self.end_moment();
        let was_held = self.held > 0 || self.entries.values().any(|entry| entry.seen.held > 0);
        self.costs.learn(&self.ended, was_held);
        let (by_others, at_all) = self.hurt(length);
        self.is_hurt = at_all;
        self.window.tick(by_others, self.mean_cost());
        self.ended = [Ended::default(); CLASSES];
        for entry in self.entries.values_mut() {
            if !entry.held.is_empty() {
                entry.seen.held_ns += now_ns.saturating_sub(entry.holding_ns);
                entry.holding_ns = now_ns;
            }
            let seen = std::mem::take(&mut entry.seen);
            entry.took_ns = 0;
            let asks = !entry.held.is_empty() || seen != Report::default();
            entry.idle = if asks { 0 } else { entry.idle + 1 };
            if let Some(tenant) = &entry.tenant {
                let mut service = tenant.service();
                service.report(tenant.policy(), self.shard, now_ns, &seen);
            }
        }
        self.entries
            .retain(|_, entry| entry.idle < IDLE_TICKS || !entry.held.is_empty());
        self.share();
        self.wake_rested();
        if self.virtual_ns > REBASE {
            self.rebase();
        }
        self.held > 0 || !self.entries.is_empty() || self.window.under_way() > 0
    }

    /// Rebases virtual time to zero, before it could overflow.
    #[cold]
    fn rebase(&mut self) {
        let base = std::mem::take(&mut self.virtual_ns);
        let finishes = self.entries.values_mut().map(|entry| &mut entry.finish);
        finishes.for_each(|finish| *finish = finish.saturating_sub(base));
        let queue = std::mem::take(&mut self.queue).into_iter();
        let queue =
            queue.map(|Reverse((start, volume))| Reverse((start.saturating_sub(base), volume)));
        self.queue = queue.collect();
    }

    fn wake_rested(&mut self) {
        for (volume, entry) in &mut self.entries {
            if std::mem::take(&mut entry.rests) && !entry.held.is_empty() {
                let start = entry.finish.max(self.virtual_ns);
                self.queue.push(Reverse((start, *volume)));
            }
        }
    }

    /// What volumes do not get that they were promised, for what others have under way; and whether some do not for
    /// whatever reason, though they ask for it.
    fn hurt(&self, length_ns: u64) -> (Hurt, bool) {
        let all: u64 = self.entries.values().map(|entry| entry.seen.cost_ns).sum();
        let (mut by_others, mut at_all) = (Hurt::Nobody, false);
        for entry in self.entries.values() {
            let missed = self.missed(entry, length_ns);
            let asks = entry.seen.held > 0 || entry.took_ns >= ASKS * length_ns;
            at_all |= missed == Hurt::Late || missed == Hurt::Below && asks;
            // What it does to itself is no reason to hold others.
            let others = all.saturating_sub(entry.seen.cost_ns);
            if others * 10 >= all {
                by_others = by_others.max(missed);
            }
        }
        (by_others, at_all)
    }

    /// What a volume did not get in a tick that it was promised.
    fn missed(&self, entry: &Entry<T>, length_ns: u64) -> Hurt {
        let Some(tenant) = &entry.tenant else {
            return Hurt::Nobody;
        };
        let seen = &entry.seen;
        let Some(mean) = entry.took_ns.checked_div(seen.operations) else {
            return Hurt::Nobody;
        };
        let most = tenant.policy().max_latency_ns;
        if most > 0 && mean > most / 2 {
            return Hurt::Late;
        }
        let floor = tenant.floor(seen.bytes / seen.operations) as u64;
        let floor = tenant.service().part(self.shard, floor);
        let had = u128::from(seen.operations) * u128::from(CAPACITY) / u128::from(length_ns);
        let is_busy = !entry.held.is_empty() || entry.took_ns >= length_ns;
        match had < u128::from(floor) && is_busy {
            true => Hurt::Below,
            false => Hurt::Nobody,
        }
    }

    /// What an operation cost on average in this tick, if several volumes were busy.
    fn mean_cost(&self) -> Option<u64> {
        let sums = self
            .entries
            .values()
            .map(|entry| entry.seen.cost_ns)
            .sum::<u64>();
        let operations: u64 = self.ended.iter().map(|of| u64::from(of.count)).sum();
        (self.entries.len() > 1).then(|| sums / operations.max(1))
    }

    /// Shares the shard's time among those that are busy.
    fn share(&mut self) {
        let claim = |entry: &Entry<T>| {
            let Some(tenant) = &entry.tenant else {
                return Claim {
                    level: *format::QOS_LEVELS.end(),
                    floor: 0,
                    weight: QOS_WEIGHT,
                };
            };
            let policy = tenant.policy();
            let floor = self.costs.floor(policy.min_iops, policy.min_bandwidth);
            let floor = floor.unwrap_or_else(|| {
                let ns = self.costs.of(class(Kind::Read, 4096));
                (tenant.floor(4096) * ns as f64) as u64
            });
            Claim {
                level: policy.level,
                floor: tenant.service().part(self.shard, floor),
                weight: policy.weight,
            }
        };
        let claims: Vec<Claim> = self.entries.values().map(claim).collect();
        let shares = shares(&claims, CAPACITY);
        for (entry, share) in self.entries.values_mut().zip(shares) {
            entry.share = share;
        }
    }
}

#[cfg(test)]
mod tests;
