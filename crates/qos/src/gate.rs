//! Admission at a shard's entry: which operation proceeds, and which is queued for how long.
//!
//! Every volume that is busy has an entry with a queue; volumes of a group have one together. What is released next is the held operation with the smallest
//! start tag; an operation's start tag is the larger of the gate's virtual time and its volume's last finish tag, which is
//! that start and the operation's cost divided by the volume's share (start-time fair queueing). A volume that requests
//! less than its share never waits for long, and unused shares are available to all.
//!
//! While one volume alone is busy and nothing limits it, nothing is asked: its operations are only counted
//! (`gate/alone.rs`).
//!
//! While a volume misses its minimum and gains by it, the others are paced (`pace.rs`, `gate/pacing.rs`): they have a queue and
//! a virtual time of their own.
//!
//! Leaves out: when it is ticked and who carries out what it lets pass (the engine's `shard/qos.rs`).

mod alone;
mod entries;
mod pacing;

pub use self::alone::AloneEnded;
use self::entries::{Entries, Held, VirtualTimes};
use super::costs::{Costs, Kind, class};
use super::due::Due;
use super::moments::Moments;
use super::pace::Pace;
use super::rivals::Rivals;
use super::service::Report;
use super::shares::{Claim, shares};
use super::tenant::Tenant;
use super::window::{Hurt, Window};
use format::QOS_WEIGHT;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use units::mutation::{Mutation, is_on};

/// The capacity of a shard, in nanoseconds per second.
const CAPACITY: u64 = 1_000_000_000;
/// Cost of what passes in one turn while several volumes are busy, in nanoseconds, and how many operations at most. Who
/// arrives meanwhile is examined after it.
const TURN_NS: u64 = 250_000;
const TURN_OPERATIONS: usize = 64;
/// Ticks without work after which a volume's entry is removed: until then two whole windows of 100 ms have been reported
/// as idle.
const IDLE_TICKS: u8 = 15;
/// Operations in progress on average with which a volume requests more than one after the other.
const ASKS: u64 = 4;
/// A loop that sleeps for less than a fourth of a tick is saturated.
const AWAKE: u64 = 4;
/// While volumes are paced, bounds of the time between two checks whether some may pass, in nanoseconds: what arrives
/// meanwhile may be the first to wait, and not every operation is worth a look of its own.
const LOOK_LEAST_NS: u64 = 50_000;
const LOOK_MOST_NS: u64 = 500_000;
/// Virtual time at which it is rebased to zero.
const REBASE: u64 = 1 << 60;

/// Resource request of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The volume.
    pub volume: u32,
    /// Its kind.
    pub kind: Kind,
    /// Its length.
    pub bytes: u64,
}

/// The gate of one shard. `T` is what is held.
pub struct Gate<T> {
    shard: usize,
    /// Every volume with a policy.
    tenants: Arc<BTreeMap<u32, Arc<Tenant>>>,
    entries: Entries<T>,
    /// Slots of volumes with held operations that do not rest, each once, by the start tag of their first.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The same for paced volumes, while there are any.
    paced: BinaryHeap<Reverse<(u64, usize)>>,
    pace: Pace,
    virtual_ns: VirtualTimes,
    held: usize,
    /// In this tick, something was held for what others had in progress, and not for its volume's maximum alone.
    was_blocked: bool,
    window: Window,
    costs: Costs,
    moments: Moments,
    ticked_ns: u64,
    /// For how long the loop had slept then.
    slept_ns: u64,
    turn: (u64, usize),
    /// In the last tick a volume missed its guarantee.
    is_hurt: bool,
}

/// The entry of a volume's operations: its own, by its number, or that of its group.
fn key(tenants: &BTreeMap<u32, Arc<Tenant>>, volume: u32) -> u32 {
    let group = tenants.get(&volume).map_or(0, |of| of.group());
    if group == 0 { volume } else { group }
}

impl<T> Gate<T> {
    /// The gate of shard number `shard` of its pool, through which everything passes.
    pub fn new(shard: usize) -> Self {
        Self {
            shard,
            tenants: Arc::default(),
            entries: Entries::default(),
            queue: BinaryHeap::new(),
            paced: BinaryHeap::new(),
            pace: Pace::default(),
            virtual_ns: VirtualTimes::default(),
            held: 0,
            was_blocked: false,
            window: Window::default(),
            costs: Costs::default(),
            moments: Moments::default(),
            ticked_ns: 0,
            slept_ns: 0,
            turn: (0, 0),
            is_hurt: false,
        }
    }

    /// Which volumes have which policies from now on.
    pub fn set_tenants(&mut self, tenants: Arc<BTreeMap<u32, Arc<Tenant>>>) {
        self.tenants = tenants;
        let all = self.tenants.iter();
        let by_key: BTreeMap<u32, &Arc<Tenant>> = all
            .map(|(volume, tenant)| (key(&self.tenants, *volume), tenant))
            .collect();
        for entry in self.entries.iter_mut() {
            entry.tenant = by_key.get(&entry.key).map(|tenant| Arc::clone(tenant));
        }
        self.regroup();
        // Who reached a maximum may have another one now.
        self.wake_rested();
        self.share();
    }

    /// Volumes may have joined or left groups: held operations go to the queues that are theirs now, in the order in which
    /// they came.
    fn regroup(&mut self) {
        self.entries
            .leave_slots(|volume| key(&self.tenants, volume));
        let is_left = |entry: &entries::Entry<T>| {
            let mut held = entry.held.iter();
            held.any(|held| key(&self.tenants, held.request.volume) != entry.key)
        };
        let entries = self.entries.iter();
        let left: Vec<u32> = entries
            .filter(|entry| is_left(entry))
            .map(|entry| entry.key)
            .collect();
        let mut moved = Vec::new();
        for (slot, entry) in self.entries.slots_mut() {
            if left.contains(&entry.key) {
                self.queue.retain(|Reverse((_, queued))| *queued != slot);
                self.paced.retain(|Reverse((_, queued))| *queued != slot);
                moved.extend(entry.held.drain(..));
            }
        }
        self.held -= moved.len();
        // Stable: the operations of a volume stay in their order.
        moved.sort_by_key(|held| held.since_ns);
        for held in moved {
            self.queue_up(held);
        }
    }

    /// Whether there is anything to be kept, or anything is held.
    pub fn is_needed(&self) -> bool {
        !self.tenants.is_empty() || self.held > 0
    }

    /// Learned costs of operations.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Whether a volume missed its guarantee in the last tick despite its demand: anything that runs beside
    /// hosts' operations is to do with less.
    pub fn is_hurt(&self) -> bool {
        self.is_hurt
    }

    /// Operations that are held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held
    }

    /// A new turn begins, of a loop that has had something to do since `awake_ns`.
    pub fn begin_turn(&mut self, awake_ns: u64) {
        self.turn = (0, 0);
        self.moments.wake(awake_ns);
    }

    fn is_over(&self) -> bool {
        self.entries.len() > 1 && (self.turn.0 >= TURN_NS || self.turn.1 >= TURN_OPERATIONS)
    }

    /// An operation that has passed waits for something else than this shard from now on, a slow drive say, and keeps it from
    /// nothing.
    pub fn step_aside(&mut self) {
        self.window.step_aside();
    }

    /// It does not any longer.
    pub fn come_back(&mut self) {
        self.window.come_back();
    }

    /// Whether [`Gate::release`] would find something in a new turn, unless it rests.
    pub fn can_release(&self, now_ns: u64) -> bool {
        let has_next = !self.queue.is_empty();
        let has_paced = !self.paced.is_empty() && self.pace.has_room(now_ns);
        has_next && self.is_pacing() || (has_next || has_paced) && self.window.has_room()
    }

    /// Whether volumes are paced for others: operations pass as time does, then.
    pub fn is_pacing(&self) -> bool {
        self.pace.favours().is_some()
    }

    /// When [`Gate::can_release`] is to be asked next though nothing ends or arrives; none while time changes nothing before
    /// the next tick.
    pub fn next_look_ns(&self, now_ns: u64) -> Option<u64> {
        let next_ns = match self.paced.is_empty() {
            true => u64::MAX,
            false => self.pace.free_ns()?,
        };
        let bounds = now_ns + LOOK_LEAST_NS..=now_ns + LOOK_MOST_NS;
        self.is_pacing()
            .then(|| next_ns.clamp(*bounds.start(), *bounds.end()))
    }

    /// The slot of a volume, which is busy from now on.
    #[inline]
    fn slot(&mut self, volume: u32, now_ns: u64) -> usize {
        match self.entries.find(volume) {
            Some(slot) => slot,
            None => self.make_busy(volume, now_ns),
        }
    }

    #[cold]
    fn make_busy(&mut self, volume: u32, now_ns: u64) -> usize {
        let key = key(&self.tenants, volume);
        if let Some(slot) = self.entries.join(volume, key) {
            return slot;
        }
        let busy = self.entries.len() as u64 + 1;
        let tenant = self.tenants.get(&volume).cloned();
        let floor = tenant.as_ref().map_or(0, |of| of.floor(4096) as u64);
        let ns = self.costs.of(class(Kind::Read, 4096));
        // Until the next tick says better: a small part of what each would have of everything.
        let least = CAPACITY / 20 / busy;
        let share = floor.saturating_mul(ns).clamp(least, CAPACITY);
        let level = tenant.as_ref().map(|of| of.policy().level);
        let favoured = self.pace.favours();
        let is_paced = favoured.is_some_and(|favoured| level.is_none_or(|level| level > favoured));
        let slot = self.entries.add(volume, key, tenant, share, now_ns);
        if let Some(entry) = self.entries.at(slot).filter(|_| is_paced) {
            entry.exempt = 0;
        }
        slot
    }

    /// Records similar operations as in flight.
    fn begin(&mut self, like: Option<Request>, count: usize) {
        let Some(like) = like else {
            return;
        };
        let under_way = self.window.under_way();
        let class = class(like.kind, like.bytes);
        self.moments.pass(class, under_way, &self.costs);
        self.window.enter(count);
    }

    /// Whether an operation may pass immediately. It then counts as in flight until [`Gate::done`]; else it has to be given
    /// to [`Gate::hold`].
    pub fn admit(&mut self, request: Request, now_ns: u64) -> bool {
        let has_room = self.window.has_room() && !self.is_over();
        let slot = self.slot(request.volume, now_ns);
        let Some(entry) = self.entries.at(slot) else {
            return true;
        };
        entry.retag(self.virtual_ns);
        let blocked = !self.queue.is_empty() || !has_room && !entry.is_favoured();
        let waits = entry.is_paced() && !(self.paced.is_empty() && self.pace.has_room(now_ns));
        if blocked || waits || !entry.held.is_empty() || !entry.allows(now_ns) {
            self.was_blocked |= blocked;
            return false;
        }
        entry.last_hold_ns = 0;
        self.charge(slot, request, now_ns);
        true
    }

    /// Holds an operation that was not admitted.
    pub fn hold(&mut self, request: Request, what: T, now_ns: u64) {
        let slot = self.slot(request.volume, now_ns);
        if let Some(entry) = self.entries.at(slot) {
            entry.seen.held += 1;
        }
        self.queue_up(Held {
            request,
            since_ns: now_ns,
            what,
        });
    }

    fn queue_up(&mut self, held: Held<T>) {
        let since_ns = held.since_ns.max(self.ticked_ns);
        let slot = self.slot(held.request.volume, since_ns);
        let Some(entry) = self.entries.at(slot) else {
            return;
        };
        let is_first = entry.held.is_empty();
        entry.held.push_back(held);
        if is_first {
            entry.holding_ns = since_ns;
            if !entry.rests {
                self.enqueue(slot);
            }
        }
        self.held += 1;
    }

    /// Has the operations of a slot wait for their turn.
    fn enqueue(&mut self, slot: usize) {
        let Some(entry) = self.entries.at(slot) else {
            return;
        };
        entry.retag(self.virtual_ns);
        let next = Reverse((entry.start(self.virtual_ns), slot));
        match entry.is_paced() {
            true => self.paced.push(next),
            false => self.queue.push(next),
        }
    }

    /// Takes the slot whose turn it is: of those that nothing limits, while there are such.
    fn dequeue(&mut self, now_ns: u64) -> Option<usize> {
        let next = self.queue.pop();
        let next = next.or_else(|| match self.pace.has_room(now_ns) {
            true => self.paced.pop(),
            false => None,
        });
        next.map(|Reverse((_, slot))| slot)
    }

    /// Counts an operation as in progress and charges its volume for it.
    fn charge(&mut self, slot: usize, request: Request, now_ns: u64) {
        let cost = self.costs.of(class(request.kind, request.bytes));
        if let Some(entry) = self.entries.at(slot) {
            let by_paced = entry.is_by_paced();
            let start = entry.charge(request.bytes, cost, self.virtual_ns, now_ns);
            self.virtual_ns.set(by_paced, start);
            if by_paced {
                self.pace.take(cost, now_ns);
            }
        }
        self.turn = (self.turn.0 + cost, self.turn.1 + 1);
        self.begin(Some(request), 1);
    }

    /// Scheduling parameters of a volume's operation that has just passed.
    pub fn due(&mut self, volume: u32, now_ns: u64) -> Due {
        let Some(tenant) = self.tenants.get(&volume) else {
            return Due::NONE;
        };
        let slot = self.entries.find(volume);
        let entry = slot.and_then(|slot| self.entries.at(slot));
        let arrived_ns = now_ns.saturating_sub(entry.map_or(0, |entry| entry.last_hold_ns));
        let policy = tenant.policy();
        let deadline_ns = match policy.max_latency_ns {
            0 => u64::MAX,
            most_ns => arrived_ns.saturating_add(most_ns),
        };
        Due::new(policy.level, deadline_ns)
    }

    /// Whether one for whom others are paced is next: what is in progress is mostly its own, and it would have all of it if it
    /// were alone.
    fn is_next_exempt(&self) -> bool {
        self.is_pacing() && !self.queue.is_empty()
    }

    /// Releases what may continue in this turn; it counts as in progress from then on.
    pub fn release(&mut self, now_ns: u64, mut out: impl FnMut(T)) {
        while self.is_next_exempt() || self.window.has_room() && !self.is_over() {
            let Some(slot) = self.dequeue(now_ns) else {
                return;
            };
            let Some(entry) = self.entries.at(slot) else {
                continue;
            };
            if !entry.allows(now_ns) {
                (entry.rests, entry.rested_ns) = (true, now_ns);
                continue;
            }
            let next = match is_on(Mutation::QosNewestFirst) {
                true => entry.held.pop_back(),
                false => entry.held.pop_front(),
            };
            let Some(next) = next else {
                continue;
            };
            entry.last_hold_ns = now_ns.saturating_sub(next.since_ns);
            entry.seen.waited_ns += entry.last_hold_ns;
            let has_more = !entry.held.is_empty();
            if !has_more {
                entry.seen.held_ns += now_ns.saturating_sub(entry.holding_ns);
            }
            self.held -= 1;
            self.charge(slot, next.request, now_ns);
            if has_more {
                self.enqueue(slot);
            }
            out(next.what);
        }
    }

    /// `count` operations that are alike have ended, each of which took so long since it passed.
    pub fn done(&mut self, request: Request, count: u64, took_ns: u64, now_ns: u64) {
        if request.kind != Kind::Other || !is_on(Mutation::QosWindowLeaks) {
            self.window.leave(count as usize);
        }
        let class = class(request.kind, request.bytes);
        let under_way = self.window.under_way();
        self.moments
            .end(class, count, under_way, &self.costs, now_ns);
        let cost = self.costs.of(class) * count;
        let slot = self.entries.find(request.volume);
        let Some(entry) = slot.and_then(|slot| self.entries.at(slot)) else {
            return;
        };
        entry.seen.cost_ns += cost;
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

    /// The maximum latency of a volume in nanoseconds; 0 without one.
    pub fn max_latency_ns(&self, volume: u32) -> u64 {
        let tenant = self.tenants.get(&volume);
        tenant.map_or(0, |of| of.policy().max_latency_ns)
    }

    /// Ticks begin: nothing was counted before.
    pub fn start(&mut self, now_ns: u64) {
        self.ticked_ns = now_ns;
        self.moments.start(now_ns);
    }

    /// Drops everything that is held.
    pub fn take_all(&mut self) -> Vec<T> {
        self.queue.clear();
        self.paced.clear();
        self.held = 0;
        let entries = self.entries.iter_mut();
        let held = entries.flat_map(|entry| entry.held.drain(..));
        held.map(|held| held.what).collect()
    }

    /// A tick has passed: reports what volumes attained, updates the cost estimates, and recomputes the shares. `slept_ns`: for
    /// how long the shard's loop has slept, ever. False when nothing has been going on for a while, so that no tick is
    /// needed before the next operation.
    pub fn tick(&mut self, now_ns: u64, slept_ns: u64) -> bool {
        let length = now_ns.saturating_sub(self.ticked_ns).max(1);
        self.ticked_ns = now_ns;
        let slept = slept_ns.saturating_sub(self.slept_ns);
        self.slept_ns = slept_ns;
        let is_saturated = slept * AWAKE <= length;
        let is_busy = std::mem::replace(&mut self.was_blocked, !self.queue.is_empty());
        let (by_others, at_all) = self.hurt(length);
        self.is_hurt = at_all;
        self.window.tick(by_others, self.mean_cost());
        self.moments.tick(&mut self.costs, is_busy);
        self.pace_others(length, is_saturated);
        let charged = self.entries.iter();
        let rivals = Rivals::of(charged.map(|entry| (entry.key, entry.seen.cost_ns)));
        for entry in self.entries.iter_mut() {
            if !entry.held.is_empty() {
                entry.seen.held_ns += now_ns.saturating_sub(entry.holding_ns);
                entry.holding_ns = now_ns;
                if entry.rests {
                    let rested = now_ns.saturating_sub(entry.rested_ns);
                    entry.seen.own_ns = rested.min(entry.seen.held_ns);
                }
            }
            entry.learn(length);
            let mut seen = std::mem::take(&mut entry.seen);
            seen.took_ns = std::mem::take(&mut entry.took_ns);
            let asks = !entry.held.is_empty() || seen != Report::default();
            entry.idle = if asks { 0 } else { entry.idle + 1 };
            if let Some(tenant) = &entry.tenant {
                let mut service = tenant.service();
                service.note_rivals(&rivals, entry.key, &seen);
                service.report(tenant.policy(), self.shard, now_ns, &seen);
            }
        }
        let shard = self.shard;
        self.entries.retain(|entry| {
            let keeps = entry.idle < IDLE_TICKS || !entry.held.is_empty();
            if let Some(tenant) = entry.tenant.as_ref().filter(|_| !keeps) {
                tenant.service().rest(shard);
            }
            keeps
        });
        self.share();
        self.wake_rested();
        if [false, true]
            .map(|paced| self.virtual_ns.of(paced))
            .into_iter()
            .max()
            > Some(REBASE)
        {
            self.rebase();
        }
        if is_on(Mutation::QosLateTicks) {
            return self.window.under_way() > 0;
        }
        self.held > 0 || !self.entries.is_empty() || self.window.under_way() > 0
    }

    /// Rebases virtual time to zero, before it could overflow.
    #[cold]
    fn rebase(&mut self) {
        let base = std::mem::take(&mut self.virtual_ns);
        for entry in self.entries.iter_mut() {
            entry.finish = entry.finish.saturating_sub(base.of(entry.is_by_paced()));
        }
        self.queue_again();
    }

    /// Queues all that is held by its start tags as they are now.
    fn queue_again(&mut self) {
        self.queue.clear();
        self.paced.clear();
        let is_next = |entry: &entries::Entry<T>| !entry.held.is_empty() && !entry.rests;
        let slots = self.entries.slots_mut();
        let slots: Vec<usize> = (slots.filter(|(_, entry)| is_next(entry)))
            .map(|(slot, _)| slot)
            .collect();
        slots.into_iter().for_each(|slot| self.enqueue(slot));
    }

    fn wake_rested(&mut self) {
        if is_on(Mutation::QosRestKept) {
            return;
        }
        let slots = self.entries.slots_mut();
        let rested = |(slot, entry): (usize, &mut entries::Entry<T>)| {
            (std::mem::take(&mut entry.rests) && !entry.held.is_empty()).then_some(slot)
        };
        let slots: Vec<usize> = slots.filter_map(rested).collect();
        slots.into_iter().for_each(|slot| self.enqueue(slot));
    }

    /// Guaranteed service that volumes miss because of others' operations in flight; and whether some miss it because of
    /// whatever reason, though they request it.
    fn hurt(&self, length_ns: u64) -> (Hurt, bool) {
        let all: u64 = self.entries.iter().map(|entry| entry.seen.cost_ns).sum();
        let (mut by_others, mut at_all) = (Hurt::Nobody, false);
        for entry in self.entries.iter() {
            let missed = self.missed(entry, length_ns);
            let asks = entry.seen.held > 0 || entry.took_ns >= ASKS * length_ns;
            at_all |= missed > Hurt::Below || missed == Hurt::Below && asks;
            // What it does to itself is no reason to hold others.
            let others = all.saturating_sub(entry.seen.cost_ns);
            // Who is below the minimum and has operations held has too small a share, whatever is in progress.
            let is_beneath = missed != Hurt::Below || entry.held.is_empty();
            if others * 10 >= all && is_beneath {
                by_others = by_others.max(missed);
            }
        }
        (by_others, at_all)
    }

    /// Guaranteed service that a volume missed in a tick.
    fn missed(&self, entry: &entries::Entry<T>, length_ns: u64) -> Hurt {
        let Some(tenant) = &entry.tenant else {
            return Hurt::Nobody;
        };
        let seen = &entry.seen;
        let Some(mean) = entry.took_ns.checked_div(seen.operations) else {
            return Hurt::Nobody;
        };
        let most = tenant.policy().max_latency_ns;
        if most > 0 && mean > most / 2 {
            return Hurt::Late(most);
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

    /// Mean cost of an operation in this tick, if several volumes were busy.
    fn mean_cost(&self) -> Option<u64> {
        let sums = self
            .entries
            .iter()
            .map(|entry| entry.seen.cost_ns)
            .sum::<u64>();
        let operations = self.entries.iter().map(|entry| entry.seen.operations);
        let operations: u64 = operations.sum();
        (self.entries.len() > 1).then(|| sums / operations.max(1))
    }

    /// Shares the shard's time among those that are busy.
    fn share(&mut self) {
        let favoured = self.pace.favours();
        let claim = |entry: &entries::Entry<T>| {
            let Some(tenant) = &entry.tenant else {
                return Claim {
                    level: *format::QOS_LEVELS.end(),
                    floor: 0,
                    weight: QOS_WEIGHT,
                };
            };
            let policy = tenant.policy();
            // One that others are paced for has its minimum already: what it requests beyond that comes after theirs.
            let has_minimum = entry.is_paced() && favoured.is_some_and(|of| policy.level <= of);
            let floor = match has_minimum {
                true => 0,
                false => entry.floor(&self.costs),
            };
            Claim {
                level: policy.level,
                floor: tenant.service().part(self.shard, floor),
                weight: policy.weight,
            }
        };
        // Those that are paced share what they have together, and never what those have for whom they are.
        let limit = self.pace.limit().unwrap_or(CAPACITY);
        for (paced, capacity) in [(false, CAPACITY), (true, limit)] {
            let is_of = |entry: &&entries::Entry<T>| entry.is_paced() == paced;
            let claims: Vec<Claim> = self.entries.iter().filter(is_of).map(claim).collect();
            let shares = shares(&claims, capacity);
            let entries = self.entries.iter_mut();
            let entries = entries.filter(|entry| entry.is_paced() == paced);
            for (entry, share) in entries.zip(shares) {
                entry.set_share(share, self.virtual_ns);
            }
        }
        self.queue_again();
    }
}

#[cfg(test)]
mod tests;
