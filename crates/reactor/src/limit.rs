//! Turns among tasks of one thread: a limited number at a time, in the order of addresses, like an elevator of a disk.
//!
//! Some who wait are urgent from a moment on ([`Urgency`]): they go before all others, the lower level first, and those of one
//! level in the order of addresses again. Earliest deadline first would send a disk's head to and fro once many are late,
//! which is when its order matters most (Reddy and Wyllie 1993 join the two in the same way). A disk that is given near
//! requests again and again takes a far one last, so while urgent tasks have turns, others have fewer. Whatever is
//! urgent, one turn in sixteen goes to the task that has waited longest: none starves.

use super::executor::Handle;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::ops::{Bound, Range};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// One in this many turns goes to the longest waiter, wherever it is.
const ELDEST: u64 = 16;
/// Most waiters whose turns become more urgent in one call.
const HURRIED_MOST: usize = 64;

/// The time at which a waiter becomes urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Urgency {
    /// The lower one goes first.
    pub level: u8,
    /// The moment, of the loop's clock.
    pub from_ns: u64,
}

/// A limited number at a time; the others wait in the order of arrival, or of addresses.
#[derive(Clone)]
pub struct Limit(Rc<LimitState>);

struct LimitState {
    most: usize,
    /// Turns that are left to those who are urgent while they have any.
    kept: usize,
    free: Cell<usize>,
    /// Urgent holders of turns, by level.
    urgent_taken: RefCell<BTreeMap<u8, usize>>,
    waiting: RefCell<BTreeMap<Key, Rc<Turn>>>,
    /// Waiters by arrival.
    came: RefCell<BTreeMap<u64, u64>>,
    /// Those of them who are urgent, or will be.
    urgent: RefCell<BTreeMap<u8, Urgent>>,
    /// The clock for their deadlines; `None` without any.
    clock: Option<Handle>,
    /// The last address served.
    last: Cell<Key>,
    turns: Cell<u64>,
    /// The number of who came last.
    numbers: Cell<u64>,
}

/// An address, and a number that tells who came first.
type Key = (u64, u64);

/// Urgent waiters of one level.
#[derive(Default)]
struct Urgent {
    /// Not yet: from when on.
    later: BTreeSet<(u64, Key)>,
    now: BTreeSet<Key>,
}

impl Urgent {
    fn remove(&mut self, from_ns: u64, key: Key) {
        if !self.later.remove(&(from_ns, key)) {
            self.now.remove(&key);
        }
    }

    /// The next one, of those who are urgent by `now_ns`.
    fn next(&mut self, now_ns: u64, last: Key) -> Option<Key> {
        while let Some((from_ns, key)) = self.later.first().copied()
            && from_ns <= now_ns
        {
            self.later.pop_first();
            self.now.insert(key);
        }
        let above = (Bound::Excluded(last), Bound::Unbounded);
        let next = self.now.range(above).next().or(self.now.first());
        next.copied()
    }
}

#[derive(Default)]
struct Turn {
    key: Key,
    urgency: Cell<Option<Urgency>>,
    granted: Cell<bool>,
    /// It was urgent by then, of this level.
    as_urgent: Cell<Option<u8>>,
    waker: RefCell<Option<Waker>>,
}

/// A turn of a [`Limit`], perhaps urgent; returned when dropped.
pub struct Permit(Rc<LimitState>, Option<u8>);

struct Waiting {
    limit: Rc<LimitState>,
    turn: Rc<Turn>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.turn.granted.get() {
            self.limit.give(self.turn.as_urgent.get());
        } else {
            self.limit.remove(self.turn.key);
        }
    }
}

impl LimitState {
    fn give(&self, as_urgent: Option<u8>) {
        self.count_urgent(as_urgent, false);
        self.free.set(self.free.get() + 1);
        self.grant();
    }

    /// Grants free turns to waiters.
    fn grant(&self) {
        while self.free.get() > 0 {
            let Some(turn) = self.next().and_then(|key| self.remove(key)) else {
                return;
            };
            self.take(turn.as_urgent.get());
            self.last.set(turn.key);
            turn.granted.set(true);
            if let Some(waker) = turn.waker.take() {
                waker.wake();
            }
        }
    }

    fn take(&self, as_urgent: Option<u8>) {
        self.free.set(self.free.get() - 1);
        self.count_urgent(as_urgent, true);
    }

    fn count_urgent(&self, level: Option<u8>, taken: bool) {
        let Some(level) = level else { return };
        let mut counts = self.urgent_taken.borrow_mut();
        let count = counts.entry(level).or_default();
        *count = match taken {
            true => *count + 1,
            false => *count - 1,
        };
        if *count == 0 {
            counts.remove(&level);
        }
    }

    /// Whether a waiter that is urgent at this level, or is not, may have a free turn.
    fn may_take(&self, level: Option<u8>) -> bool {
        let counts = self.urgent_taken.borrow();
        let Some((first, _)) = counts.first_key_value() else {
            return true;
        };
        let others = self.most - self.free.get() - counts[first];
        level.is_some_and(|level| level <= *first) || others + self.kept < self.most
    }

    /// The level of an urgent waiter.
    fn level_now(&self, urgency: Option<Urgency>) -> Option<u8> {
        let clock = self.clock.as_ref()?;
        let urgent = urgency.filter(|urgency| urgency.from_ns <= clock.seen_ns());
        urgent.map(|urgency| urgency.level)
    }

    /// The next waiter: of the urgent ones, else of all, upwards from the last address, then from the lowest again.
    fn next(&self) -> Option<Key> {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get().is_multiple_of(ELDEST) {
            let came = self.came.borrow();
            return came.first_key_value().map(|(number, at)| (*at, *number));
        }
        if let Some((level, key)) = self.next_urgent() {
            return self.may_take(Some(level)).then_some(key);
        }
        if !self.may_take(None) {
            return None;
        }
        let waiting = self.waiting.borrow();
        let above = (Bound::Excluded(self.last.get()), Bound::Unbounded);
        let next = waiting.range(above).next().or(waiting.first_key_value());
        next.map(|(key, _)| *key)
    }

    fn next_urgent(&self) -> Option<(u8, Key)> {
        let mut urgent = self.urgent.borrow_mut();
        let clock = self.clock.as_ref().filter(|_| !urgent.is_empty())?;
        let (now_ns, last) = (clock.seen_ns(), self.last.get());
        let mut levels = urgent.iter_mut();
        levels.find_map(|(level, of)| Some((*level, of.next(now_ns, last)?)))
    }

    fn remove(&self, key: Key) -> Option<Rc<Turn>> {
        self.came.borrow_mut().remove(&key.1);
        let turn = self.waiting.borrow_mut().remove(&key)?;
        turn.as_urgent.set(self.level_now(turn.urgency.get()));
        self.set_urgency(&turn, None);
        Some(turn)
    }

    fn set_urgency(&self, turn: &Turn, next: Option<Urgency>) {
        let before = turn.urgency.replace(next);
        if before.is_none() && next.is_none() {
            return;
        }
        let mut urgent = self.urgent.borrow_mut();
        if let Some(before) = before
            && let Some(level) = urgent.get_mut(&before.level)
        {
            level.remove(before.from_ns, turn.key);
            if level.later.is_empty() && level.now.is_empty() {
                urgent.remove(&before.level);
            }
        }
        if let Some(next) = next {
            let level = urgent.entry(next.level).or_default();
            level.later.insert((next.from_ns, turn.key));
        }
    }
}

impl Limit {
    /// A limit of `count`.
    pub fn new(count: usize) -> Self {
        Self::with_clock(count, 0, None)
    }

    /// The same, where waiters may become urgent by the clock of this loop; `kept` turns are reserved for them while any of them
    /// has one.
    pub fn timed(count: usize, kept: usize, handle: &Handle) -> Self {
        Self::with_clock(count, kept, Some(handle.clone()))
    }

    fn with_clock(count: usize, kept: usize, clock: Option<Handle>) -> Self {
        Self(Rc::new(LimitState {
            most: count,
            kept,
            free: Cell::new(count),
            urgent_taken: RefCell::default(),
            waiting: RefCell::default(),
            came: RefCell::default(),
            urgent: RefCell::default(),
            clock,
            last: Cell::default(),
            turns: Cell::default(),
            numbers: Cell::default(),
        }))
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.0.most - self.0.free.get()
    }

    /// A turn, if one is free and no task waits.
    pub fn try_get(&self) -> Option<Permit> {
        self.try_get_as(None)
    }

    fn try_get_as(&self, as_urgent: Option<u8>) -> Option<Permit> {
        let limit = &self.0;
        let may = limit.free.get() > 0 && limit.waiting.borrow().is_empty();
        (may && limit.may_take(as_urgent)).then(|| {
            limit.take(as_urgent);
            Permit(limit.clone(), as_urgent)
        })
    }

    /// One of them, after those who came before.
    pub async fn get(&self) -> Permit {
        self.get_at(0, None).await
    }

    /// A turn: waiters are served upwards from the last address, and then from the lowest
    /// again, as a disk's head goes; urgent ones first, and one in sixteen is the longest waiter.
    pub async fn get_at(&self, at: u64, urgency: Option<Urgency>) -> Permit {
        if let Some(permit) = self.try_get_as(self.0.level_now(urgency)) {
            self.0.last.set((at, self.0.numbers.get()));
            return permit;
        }
        let number = self.0.numbers.get() + 1;
        self.0.numbers.set(number);
        let turn = Rc::new(Turn {
            key: (at, number),
            ..Turn::default()
        });
        self.0.waiting.borrow_mut().insert(turn.key, turn.clone());
        self.0.came.borrow_mut().insert(number, at);
        self.0.set_urgency(&turn, urgency);
        let waiting = Waiting {
            limit: self.0.clone(),
            turn: turn.clone(),
        };
        // One is left free if the waiter is less urgent than the holders.
        self.0.grant();
        poll_fn(|context| {
            if turn.granted.get() {
                return Poll::Ready(());
            }
            *turn.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        turn.granted.set(false);
        drop(waiting);
        Permit(self.0.clone(), turn.as_urgent.get())
    }

    /// Raises the urgency of waiters at these addresses, since a more urgent task waits for them.
    pub fn hurry(&self, addresses: Range<u64>, urgency: Urgency) {
        let waiting = self.0.waiting.borrow();
        let there = waiting.range((addresses.start, 0)..(addresses.end, 0));
        for (_, turn) in there.take(HURRIED_MOST) {
            if turn.urgency.get().is_none_or(|known| urgency < known) {
                self.0.set_urgency(turn, Some(urgency));
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.give(self.1);
    }
}

#[cfg(test)]
mod tests;
