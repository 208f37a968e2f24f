//! The volumes that are busy at a gate, each with what is held of it and what it has in this tick. Volumes of a group have
//! one entry together.
//!
//! A volume's entry lies in a slot, which it keeps until it was idle for a while. Operations mostly come in rows of one
//! volume: the slot that was found last is looked at first.

use crate::gate::{CAPACITY, Request};
use crate::service::Report;
use crate::tenant::Tenant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

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
            took_ns: 0,
            idle: 0,
        }
    }

    /// Charges it for an operation. Returns the start tag.
    pub fn charge(&mut self, bytes: u64, cost: u64, virtual_ns: u64, now_ns: u64) -> u64 {
        if let Some(tenant) = &self.tenant {
            tenant.take(bytes, now_ns);
        }
        let start = self.finish.max(virtual_ns);
        // Both are a second at most: the product fits.
        let takes = cost * CAPACITY / self.share.max(1);
        self.finish = start.saturating_add(takes);
        self.idle = 0;
        start
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

    /// Makes a volume busy whose group is, and tells the slot; none when there is no entry of this key.
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

    /// Makes a volume busy that is not, with an entry of this key of which there is none, and tells its slot.
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

    /// Those with their slots.
    pub fn slots_mut(&mut self) -> impl Iterator<Item = (usize, &mut Entry<T>)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(slot, entry)| entry.as_mut().map(|entry| (slot, entry)))
    }

    /// Gives up those that `keeps` does not want.
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
