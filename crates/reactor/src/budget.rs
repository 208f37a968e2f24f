//! Bytes of memory that hosts make the daemon hold: limits, and an account of each session.
//!
//! All that a host can make a front end keep in memory (requests in flight, answers that it does not read) is taken from
//! [`Budget`]s before it is allocated: that of the host's address, that of the volume, and that of the whole daemon, of
//! which the volume's is a part. A session that finds too little waits and does not read its socket meanwhile, which is
//! back-pressure. Requests wait in the order in which they came, so that small ones cannot starve a large one.
//!
//! An [`Account`] is a session's. A little is free to each session ([`OWN`]), whatever others hold, so that small
//! requests are served under pressure, too; beyond that it takes and returns bytes in granules, since the budgets' counters
//! are shared by all cores. What a session does not need is returned immediately when another one waits.

use crate::{Handle, SECOND_NS, within};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes that each session has of its own.
pub const OWN: usize = 64 << 10;
/// Bytes that are taken from budgets and returned to them in one step.
const GRANULE: usize = 256 << 10;
/// A step of a peer, such as reading what was sent to it, may take this long, and this long while others wait for memory.
const PATIENCE_S: u64 = 60;
const PATIENCE_PRESSED_S: u64 = 5;

/// A number of bytes, shared by sessions on any loop.
#[derive(Clone)]
pub struct Budget(Arc<Node>);

struct Node {
    most: usize,
    whole: Option<Budget>,
    used: AtomicUsize,
    /// How many wait: the length of `queue`, which is only examined when this is not 0.
    waiting: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    last: u64,
    /// By number, the lowest came first.
    waiting: BTreeMap<u64, Waker>,
}

impl Budget {
    /// A budget of `most` bytes.
    pub fn new(most: usize) -> Self {
        Self::with(most, None)
    }

    /// A part of this budget: what is taken of it is taken of both, and is at most `most` bytes.
    pub fn part(&self, most: usize) -> Self {
        Self::with(most, Some(self.clone()))
    }

    fn with(most: usize, whole: Option<Self>) -> Self {
        Self(Arc::new(Node {
            most,
            whole,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            queue: Mutex::default(),
        }))
    }

    /// Bytes that it is limited to.
    pub fn most(&self) -> usize {
        self.0.most
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Whether this budget has other users.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Requests that wait for it.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }
}

impl Node {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes if they are available and no waiter is first. More than all of them are there when none is taken.
    fn try_take(&self, bytes: usize, ticket: Option<u64>) -> bool {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let first = self.queue().waiting.first_key_value().map(|(at, _)| *at);
            if first.is_some() && first != ticket {
                return false;
            }
        }
        let fits = |used: usize| {
            let sum = used.saturating_add(bytes);
            (used == 0 || sum <= self.most).then_some(sum)
        };
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits)
            .is_ok()
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        self.wake_first();
    }

    /// Has who came first look again.
    fn wake_first(&self) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let waker = self
            .queue()
            .waiting
            .first_key_value()
            .map(|(_, waker)| waker.clone());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits at this node with the number that it gave, or gives one.
    fn enter(&self, ticket: Option<u64>, waker: &Waker) -> u64 {
        let mut queue = self.queue();
        let number = ticket.unwrap_or(queue.last + 1);
        queue.last = queue.last.max(number);
        queue.waiting.insert(number, waker.clone());
        self.waiting.store(queue.waiting.len(), Ordering::SeqCst);
        number
    }

    fn leave(&self, ticket: u64) {
        {
            let mut queue = self.queue();
            queue.waiting.remove(&ticket);
            self.waiting.store(queue.waiting.len(), Ordering::SeqCst);
        }
        self.wake_first();
    }
}

/// Memory held by one session. Its parts may wait concurrently.
pub struct Account {
    /// The smallest first: what is short of is found before the others' counters are touched.
    budgets: Vec<Budget>,
    /// Bytes taken of each of them.
    held: Cell<usize>,
    used: Cell<usize>,
    /// Tasks of this session that wait.
    waiting: RefCell<Vec<Waker>>,
}

/// A place in the queue of one of the budgets; left when dropped.
struct Place {
    budget: Budget,
    ticket: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.budget.0.leave(self.ticket);
    }
}

impl Account {
    /// An account that takes of each of these budgets and of those that they are parts of. No two may be parts of the
    /// same one.
    pub fn new(budgets: impl IntoIterator<Item = Budget>) -> Self {
        let mut all = Vec::new();
        for budget in budgets {
            let mut next = Some(budget);
            while let Some(budget) = next {
                next = budget.0.whole.clone();
                all.push(budget);
            }
        }
        all.sort_by_key(Budget::most);
        Self {
            budgets: all,
            held: Cell::default(),
            used: Cell::default(),
            waiting: RefCell::default(),
        }
    }

    /// Bytes that the session uses.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Takes bytes, if that needs no waiting.
    pub fn try_take(&self, bytes: usize) -> bool {
        let used = self.used.get() + bytes;
        if used > OWN + self.held.get() && self.lease(used, None).is_err() {
            return false;
        }
        self.used.set(used);
        true
    }

    /// Takes bytes when they are there, after those who came before. Giving up the wait takes nothing.
    pub async fn take(&self, bytes: usize) {
        let mut place: Option<Place> = None;
        poll_fn(|context| self.poll_take(bytes, &mut place, context)).await;
    }

    fn poll_take(
        &self,
        bytes: usize,
        place: &mut Option<Place>,
        context: &Context<'_>,
    ) -> Poll<()> {
        // Once more after each time that a place was entered: memory returned before that woke no task.
        loop {
            let used = self.used.get() + bytes;
            let short = if used <= OWN + self.held.get() {
                None
            } else {
                self.lease(used, place.as_ref()).err()
            };
            let Some(short) = short else {
                self.used.set(used);
                *place = None;
                return Poll::Ready(());
            };
            let same = place
                .as_ref()
                .filter(|place| Arc::ptr_eq(&place.budget.0, &short.0));
            let known = same.map(|place| place.ticket);
            let ticket = short.0.enter(known, context.waker());
            if known.is_some() {
                let mut waiting = self.waiting.borrow_mut();
                if !waiting.iter().any(|known| known.will_wake(context.waker())) {
                    waiting.push(context.waker().clone());
                }
                return Poll::Pending;
            }
            *place = Some(Place {
                budget: short,
                ticket,
            });
        }
    }

    /// Takes granules of all budgets so that `used` bytes are covered, or names the one that is short.
    fn lease(&self, used: usize, place: Option<&Place>) -> Result<(), Budget> {
        let need = (used - OWN).next_multiple_of(GRANULE) - self.held.get();
        for (index, budget) in self.budgets.iter().enumerate() {
            let place = place.filter(|place| Arc::ptr_eq(&place.budget.0, &budget.0));
            if !budget.0.try_take(need, place.map(|place| place.ticket)) {
                for taken in &self.budgets[..index] {
                    taken.0.give(need);
                }
                return Err(budget.clone());
            }
        }
        self.held.set(self.held.get() + need);
        Ok(())
    }

    /// Returns bytes that were taken.
    pub fn give(&self, bytes: usize) {
        let used = self.used.get() - bytes;
        self.used.set(used);
        let held = self.held.get();
        if held > 0 {
            let need = used.saturating_sub(OWN).next_multiple_of(GRANULE);
            let spare = held.saturating_sub(need);
            // A session that takes and returns the same few bytes does not touch what all cores share.
            if spare > GRANULE || (spare > 0 && (used == 0 || self.others_wait())) {
                self.return_granules(spare);
            }
        }
        if !self.waiting.borrow().is_empty() {
            let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    fn return_granules(&self, bytes: usize) {
        self.held.set(self.held.get() - bytes);
        for budget in &self.budgets {
            budget.0.give(bytes);
        }
    }

    /// Whether another task waits for a budget that this session uses.
    pub fn others_wait(&self) -> bool {
        self.budgets.iter().any(|budget| budget.waiting() > 0)
    }

    /// Result of a step that waits for the peer; `None` if it took 60 s, or 5 s in which others waited for memory
    /// that this session holds: then the session is to end.
    pub async fn patiently<T>(&self, handle: &Handle, step: impl Future<Output = T>) -> Option<T> {
        let mut step = pin!(step);
        let mut pressed = 0;
        for _ in 0..PATIENCE_S {
            if let Some(done) = within(handle, SECOND_NS, &mut step).await {
                return Some(done);
            }
            pressed = match self.held.get() > 0 && self.others_wait() {
                true => pressed + 1,
                false => 0,
            };
            if pressed >= PATIENCE_PRESSED_S {
                return None;
            }
        }
        None
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.return_granules(self.held.get());
    }
}

#[cfg(test)]
mod tests;
