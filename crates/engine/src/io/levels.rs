//! Priorities for scarce resources: space on the fast tier and in the journal is granted by the levels of the waiters.
//!
//! Two means, both only while the pool has policies. A **reserve**: of what hosts may take, an eighth is not for everyone;
//! each level leaves a part of it to the levels above, so that a flood of a low one does not make a high one wait
//! ([`left_to_others`]). And a **line** ([`Line`]) for those who wait for slots: the highest level goes first, and of one
//! level who came first. No write starves: one in a hundred is the one that has waited longest, and a reserve
//! delays, it never refuses.
//!
//! Leaves out: waiting, and taking (`io/write/slow_path.rs`, `wal/log.rs`); how fast room is taken that is short (`io/write/admission.rs`).

use crate::shard::state::Shard;
use qos::Due;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use units::mutation::{Mutation, is_on};

/// The share of what hosts may take that is reserved by level.
const RESERVE: u64 = 8;
/// One in this many grants goes to the longest waiter.
const ELDEST: u64 = 100;

/// The part of `all` that an operation with this priority has to leave to others.
fn left_to_others(all: u64, due: Due) -> u64 {
    match is_on(Mutation::RoomUndue) {
        true => 0,
        false => all / RESERVE * due.rank() as u64 / (Due::RANKS - 1) as u64,
    }
}

/// Waiters for slots.
#[derive(Default)]
pub(crate) struct Line {
    /// By rank, then by arrival.
    waiting: RefCell<BTreeSet<(usize, u64)>>,
    /// Their ranks, by arrival.
    came: RefCell<BTreeMap<u64, usize>>,
    numbers: Cell<u64>,
    went: Cell<u64>,
    /// It is the turn of the first arrival, whatever its rank.
    eldest: Cell<bool>,
}

/// A place in the line, until it is dropped.
pub(crate) struct InLine<'a> {
    line: &'a Line,
    place: (usize, u64),
}

impl Line {
    /// Enqueues an operation with this priority.
    pub fn join(&self, due: Due) -> InLine<'_> {
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        let rank = match is_on(Mutation::RoomUndue) {
            true => 0,
            false => due.rank(),
        };
        self.waiting.borrow_mut().insert((rank, number));
        self.came.borrow_mut().insert(number, rank);
        InLine {
            line: self,
            place: (rank, number),
        }
    }

    /// Whether an operation with this priority may take slots without queueing.
    pub fn may_pass(&self, due: Due) -> bool {
        let first = self.waiting.borrow().first().copied();
        first.is_none_or(|(rank, _)| due.rank() < rank && !is_on(Mutation::RoomUndue))
    }

    /// Slots were taken.
    pub fn went(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        self.went.set(self.went.get() + 1);
        if self.went.get().is_multiple_of(ELDEST) {
            self.eldest.set(true);
        }
    }

    /// Whether the line is not empty.
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }
}

impl InLine<'_> {
    /// It is next, by its rank or as the longest waiter.
    pub fn is_next(&self) -> bool {
        let first = self.line.waiting.borrow().first().copied();
        first == Some(self.place) || self.is_eldest()
    }

    /// It is granted now, whatever its rank.
    pub fn is_eldest(&self) -> bool {
        let came = self.line.came.borrow();
        let first = came.first_key_value().map(|(number, _)| *number);
        self.line.eldest.get() && first == Some(self.place.1)
    }

    /// Its wait is over.
    pub fn goes(self) {
        if self.is_eldest() {
            self.line.eldest.set(false);
        }
        self.line.went();
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.line.waiting.borrow_mut().remove(&self.place);
        self.line.came.borrow_mut().remove(&self.place.1);
    }
}

impl Shard {
    /// The part of `all` that an operation with this priority has to leave to others: nothing without policies.
    #[inline]
    pub(crate) fn kept_for_others(&self, all: u64, due: Due) -> u64 {
        match self.has_policies() {
            true => left_to_others(all, due),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests;
