//! The volumes that are busy at a gate, each with what is held of it and what it has in this tick. Volumes of a group have
//! one entry together.
//!
//! A volume's entry is in a slot, which it keeps until it was idle for a while. Operations mostly come in rows of one
//! volume: the slot that was found last is examined first.

use crate::costs::{Costs, Kind, class};
use crate::gate::{CAPACITY, Request};
use crate::service::Report;
use crate::tenant::Tenant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::mutation::{Mutation, is_on};

/// Part of a tick for which operations have to be held for all of a minimum to count, and what is added to what a volume
/// asks for: a fifth, and nanoseconds a second.
const BACKLOGGED: u64 = 4;
const AHEAD: f64 = 1.2;
const LEAST: f64 = CAPACITY as f64 / 100.0;

/// Virtual times of those that nothing limits and of those that are paced. Time continues with what passes, and where the latter
/// have little of it, the former pass by them.
#[derive(Clone, Copy, Default)]
pub(super) struct VirtualTimes {
    free_ns: u64,
    paced_ns: u64,
}

impl VirtualTimes {
    pub fn of(&self, by_paced: bool) -> u64 {
        match by_paced && !is_on(Mutation::QosPacedLate) {
            true => self.paced_ns,
            false => self.free_ns,
        }
    }

    pub fn set(&mut self, by_paced: bool, ns: u64) {
        match by_paced && !is_on(Mutation::QosPacedLate) {
            true => self.paced_ns = ns,
            false => self.free_ns = ns,
        }
    }
}

/// An operation that waits.
pub(super) struct Held<T> {
    pub request: Request,
    pub since_ns: u64,
    pub what: T,
}

/// A volume, or a group of them, that is busy.
pub(super) struct Entry<T> {
    /// Number of the volume, or of the group, which is that of no volume.
    pub key: u32,
    pub tenant: Option<Arc<Tenant>>,
    /// Nanoseconds a second.
    pub share: u64,
    /// Finish tag of what it was charged for last.
    pub finish: u64,
    pub held: VecDeque<Held<T>>,
    /// Its maximum was reached: nothing of it is released before the next tick.
    pub rests: bool,
    /// Since when.
    pub rested_ns: u64,
    /// For how long the operation was held that was released last, in nanoseconds.
    pub last_hold_ns: u64,
    /// Since when operations have been held, in this tick.
    pub holding_ns: u64,
    pub seen: Report,
    /// How many operations it may pass in this tick before it is paced with the others, for the sake of those who miss their
    /// minimum.
    pub exempt: u64,
    /// By whose virtual time its tags are: that of the paced.
    by_paced: bool,
    /// Bytes and cost of its operations, on average of the latest ones; zero before any has ended.
    mean: (f64, f64),
    /// Its demand, in nanoseconds per second: its recent service and half as much again. `None`: unlimited.
    asks: Option<f64>,
    /// Sum of what operations took beneath the gate in this tick, in nanoseconds.
    pub took_ns: u64,
    pub idle: u8,
}

impl<T> Entry<T> {
    fn new(key: u32, tenant: Option<Arc<Tenant>>, share: u64, now_ns: u64) -> Self {
        Self {
            key,
            tenant,
            share,
            finish: 0,
            held: VecDeque::new(),
            rests: false,
            rested_ns: 0,
            last_hold_ns: 0,
            holding_ns: now_ns,
            seen: Report::default(),
            exempt: u64::MAX,
            by_paced: false,
            mean: (0.0, 0.0),
            asks: None,
            took_ns: 0,
            idle: 0,
        }
    }

    /// Its tags are by the virtual time that is its own from now on: as far ahead of it as they were of the other.
    pub fn retag(&mut self, virtual_ns: VirtualTimes) {
        if self.by_paced != self.is_paced() {
            let ahead = self.finish.saturating_sub(virtual_ns.of(self.by_paced));
            self.by_paced = self.is_paced();
            self.finish = virtual_ns.of(self.by_paced) + ahead;
        }
    }

    /// Whether its tags are by the virtual time of the paced.
    pub fn is_by_paced(&self) -> bool {
        self.by_paced
    }

    /// The start tag of its next operation. A volume that was idle starts now, whatever it did not request.
    pub fn start(&self, virtual_ns: VirtualTimes) -> u64 {
        match is_on(Mutation::QosTagKept) {
            true => self.finish,
            false => self.finish.max(virtual_ns.of(self.by_paced)),
        }
    }

    /// Gives it another share. What it was charged for and is not over yet is worth as much time as before: who had little
    /// does not wait for long once there is more.
    pub fn set_share(&mut self, share: u64, virtual_ns: VirtualTimes) {
        let virtual_ns = virtual_ns.of(self.by_paced);
        let ahead = self.finish.saturating_sub(virtual_ns);
        if ahead > 0 && share != self.share && !is_on(Mutation::QosDebtKept) {
            let ahead = u128::from(ahead) * u128::from(self.share) / u128::from(share.max(1));
            let ahead = u64::try_from(ahead).unwrap_or(u64::MAX / 4);
            self.finish = virtual_ns.saturating_add(ahead);
        }
        self.share = share;
    }

    /// Charges it for an operation. Returns the start tag.
    pub fn charge(&mut self, bytes: u64, cost: u64, virtual_ns: VirtualTimes, now_ns: u64) -> u64 {
        if let Some(tenant) = &self.tenant
            && !(self.last_hold_ns > 0 && is_on(Mutation::QosHeldUncounted))
        {
            tenant.take(bytes, now_ns);
        }
        let start = self.start(virtual_ns);
        // Both are a second at most: the product fits.
        let takes = cost * CAPACITY / self.share.max(1);
        self.finish = start.saturating_add(takes);
        self.idle = 0;
        if self.is_favoured() {
            self.exempt -= 1;
        }
        start
    }

    /// A tick of this length has passed: what it did in it tells what its operations are like, and what it requests.
    pub fn learn(&mut self, length_ns: u64) {
        let had = self.seen.cost_ns as f64 * CAPACITY as f64 / length_ns as f64;
        let is_backlogged = self.seen.held_ns * BACKLOGGED >= length_ns;
        self.asks = (!is_backlogged).then(|| {
            let before = self.asks.unwrap_or(had * AHEAD);
            before + (had * AHEAD - before) / 4.0
        });
        if self.seen.operations == 0 {
            return;
        }
        let count = self.seen.operations as f64;
        let (bytes, cost) = (
            self.seen.bytes as f64 / count,
            self.seen.cost_ns as f64 / count,
        );
        self.mean = match self.mean.1 > 0.0 {
            true => (
                self.mean.0 + (bytes - self.mean.0) / 4.0,
                self.mean.1 + (cost - self.mean.1) / 4.0,
            ),
            false => (bytes, cost),
        };
    }

    /// Nanoseconds a second that its minimum takes, with operations as it has them.
    pub fn floor(&self, costs: &Costs) -> u64 {
        let Some(tenant) = &self.tenant else {
            return 0;
        };
        let first = self.held.front().map(|held| held.request);
        let (bytes, cost) = match (self.mean.1 > 0.0, first) {
            (true, _) => self.mean,
            (false, Some(first)) => (
                first.bytes as f64,
                costs.of(class(first.kind, first.bytes)) as f64,
            ),
            (false, None) => (4096.0, costs.of(class(Kind::Read, 4096)) as f64),
        };
        // What it does not request is for those who miss theirs, not for everyone by their shares.
        let floor = tenant.floor(bytes as u64) * cost;
        if self.is_favoured() {
            return floor as u64;
        }
        self.asks.map_or(floor, |asks| floor.min(asks + LEAST)) as u64
    }

    /// Whether it may pass only what is left to everybody else.
    pub fn is_paced(&self) -> bool {
        self.exempt == 0
    }

    /// Whether others are paced for it.
    pub fn is_favoured(&self) -> bool {
        self.exempt > 0 && self.exempt != u64::MAX
    }

    /// Whether it has maximums that have to be asked.
    pub fn is_capped(&self) -> bool {
        self.tenant.as_ref().is_some_and(|of| of.is_capped())
    }

    /// Whether its maximums let an operation pass now.
    pub fn allows(&self, now_ns: u64) -> bool {
        let tenant = self.tenant.as_ref();
        tenant.is_none_or(|tenant| tenant.allows(now_ns))
    }
}

/// All of them.
pub(super) struct Entries<T> {
    slots: Vec<Option<Entry<T>>>,
    /// Slots of busy volumes; those of a group have the same one.
    of: BTreeMap<u32, usize>,
    /// Entries.
    count: usize,
    /// The volume that was looked for last, and its slot.
    last: (u32, usize),
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            of: BTreeMap::new(),
            count: 0,
            last: (0, usize::MAX),
        }
    }
}

impl<T> Entries<T> {
    /// How many volumes are busy; a group counts once.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The slot of a volume that is busy.
    #[inline]
    pub fn find(&mut self, volume: u32) -> Option<usize> {
        if self.last.0 == volume && self.last.1 < self.slots.len() {
            return Some(self.last.1);
        }
        let slot = *self.of.get(&volume)?;
        self.last = (volume, slot);
        Some(slot)
    }

    /// Creates a volume busy whose group is, and tells the slot; none when there is no entry of this key.
    #[cold]
    pub fn join(&mut self, volume: u32, key: u32) -> Option<usize> {
        let is_of = |slot: &Option<Entry<T>>| slot.as_ref().is_some_and(|entry| entry.key == key);
        let slot = self.slots.iter().position(is_of)?;
        self.of.insert(volume, slot);
        self.last = (volume, slot);
        Some(slot)
    }

    /// Volumes keep their slots where `key` still says that of the entry there; the others get one with their next
    /// operation.
    pub fn leave_slots(&mut self, key: impl Fn(u32) -> u32) {
        let slots = &self.slots;
        self.of.retain(|volume, slot| {
            let entry = slots[*slot].as_ref();
            entry.is_some_and(|entry| entry.key == key(*volume))
        });
        self.last = (0, usize::MAX);
    }

    /// Adds an entry for a volume that becomes busy, under a key that has none yet, and returns its slot.
    #[cold]
    pub fn add(
        &mut self,
        volume: u32,
        key: u32,
        tenant: Option<Arc<Tenant>>,
        share: u64,
        now_ns: u64,
    ) -> usize {
        let entry = Some(Entry::new(key, tenant, share, now_ns));
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(slot) => {
                self.slots[slot] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() - 1
            }
        };
        self.count += 1;
        self.of.insert(volume, slot);
        self.last = (volume, slot);
        slot
    }

    /// The entry in a slot that [`Entries::find`] or [`Entries::add`] told.
    #[inline]
    pub fn at(&mut self, slot: usize) -> Option<&mut Entry<T>> {
        self.slots.get_mut(slot).and_then(Option::as_mut)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.slots.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<T>> {
        self.slots.iter_mut().flatten()
    }

    /// Entries with their slots.
    pub fn slots_mut(&mut self) -> impl Iterator<Item = (usize, &mut Entry<T>)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(slot, entry)| entry.as_mut().map(|entry| (slot, entry)))
    }

    /// Removes entries that `keeps` rejects.
    pub fn retain(&mut self, keeps: impl Fn(&Entry<T>) -> bool) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|entry| !keeps(entry)) {
                *slot = None;
                self.count -= 1;
            }
        }
        let slots = &self.slots;
        self.of.retain(|_, slot| slots[*slot].is_some());
        while self.slots.last().is_some_and(Option::is_none) {
            self.slots.pop();
        }
        self.last = (0, usize::MAX);
    }
}
