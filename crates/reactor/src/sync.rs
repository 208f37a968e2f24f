//! Waiting for one another, among tasks of one thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Bound;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Something that happens again and again; tasks wait for the next time.
#[derive(Clone, Default)]
pub struct Event(Rc<EventState>);

#[derive(Default)]
struct EventState {
    count: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Event {
    /// It happens: every task that waits goes on.
    pub fn notify(&self) {
        self.0.count.set(self.0.count.get() + 1);
        let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
        for waker in waiting {
            waker.wake();
        }
    }

    /// Waits for the next time it happens, counted from this call and not from the first poll.
    pub fn wait(&self) -> impl Future<Output = ()> + use<> {
        let state = self.0.clone();
        let seen = state.count.get();
        poll_fn(move |context| {
            if state.count.get() != seen {
                return Poll::Ready(());
            }
            let mut waiting = state.waiting.borrow_mut();
            // A task that waits for this with a limit of time, again and again, is there once.
            let known = waiting
                .last()
                .is_some_and(|last| last.will_wake(context.waker()));
            if !known {
                waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
    }
}

/// Of so many turns one goes to who has waited for longest, wherever that is.
const ELDEST: u64 = 16;

/// At most so many at a time; the others wait in the order in which they came, or of addresses.
#[derive(Clone)]
pub struct Limit(Rc<LimitState>);

struct LimitState {
    most: usize,
    free: Cell<usize>,
    waiting: RefCell<BTreeMap<Key, Rc<Turn>>>,
    /// Who came first, of those who wait.
    came: RefCell<BTreeMap<u64, u64>>,
    /// Who went last.
    last: Cell<Key>,
    turns: Cell<u64>,
    /// The number of who came last.
    numbers: Cell<u64>,
}

/// An address, and a number that tells who came first.
type Key = (u64, u64);

#[derive(Default)]
struct Turn {
    key: Key,
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// One of a [`Limit`]; given back when dropped.
pub struct Permit(Rc<LimitState>);

struct Waiting {
    limit: Rc<LimitState>,
    turn: Rc<Turn>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.turn.granted.get() {
            self.limit.give();
        } else {
            self.limit.remove(self.turn.key);
        }
    }
}

impl LimitState {
    fn give(&self) {
        let Some(turn) = self.next().and_then(|key| self.remove(key)) else {
            self.free.set(self.free.get() + 1);
            return;
        };
        self.last.set(turn.key);
        turn.granted.set(true);
        if let Some(waker) = turn.waker.take() {
            waker.wake();
        }
    }

    /// Who is next: upwards from who went last, and from the lowest again.
    fn next(&self) -> Option<Key> {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get().is_multiple_of(ELDEST) {
            let came = self.came.borrow();
            return came.first_key_value().map(|(number, at)| (*at, *number));
        }
        let waiting = self.waiting.borrow();
        let above = (Bound::Excluded(self.last.get()), Bound::Unbounded);
        let next = waiting.range(above).next().or(waiting.first_key_value());
        next.map(|(key, _)| *key)
    }

    fn remove(&self, key: Key) -> Option<Rc<Turn>> {
        self.came.borrow_mut().remove(&key.1);
        self.waiting.borrow_mut().remove(&key)
    }
}

impl Limit {
    /// A limit of `count`.
    pub fn new(count: usize) -> Self {
        Self(Rc::new(LimitState {
            most: count,
            free: Cell::new(count),
            waiting: RefCell::default(),
            came: RefCell::default(),
            last: Cell::default(),
            turns: Cell::default(),
            numbers: Cell::default(),
        }))
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.0.most - self.0.free.get()
    }

    /// One of them, if one is free and nobody waits.
    pub fn try_get(&self) -> Option<Permit> {
        let free = self.0.free.get();
        (free > 0).then(|| {
            self.0.free.set(free - 1);
            Permit(self.0.clone())
        })
    }

    /// One of them, after those who came before.
    pub async fn get(&self) -> Permit {
        self.get_at(0).await
    }

    /// One of them: those who wait have their turns upwards from who had the last one, and then from the lowest
    /// again, as a disk's head goes; one of sixteen goes to who has waited for longest.
    pub async fn get_at(&self, at: u64) -> Permit {
        if let Some(permit) = self.try_get() {
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
        let waiting = Waiting {
            limit: self.0.clone(),
            turn: turn.clone(),
        };
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
        Permit(self.0.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_that_gives_up_waiting_again_and_again_is_kept_once() {
        let (event, counting) = (Event::default(), Arc::new(Counting::default()));
        let waker = Waker::from(counting.clone());
        for _ in 0..1000 {
            let waiting = pin!(event.wait());
            assert!(waiting.poll(&mut Context::from_waker(&waker)).is_pending());
        }
        event.notify();
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    }

    /// Who gets the turns, of those who wait at these addresses while the one at 50 has the only one.
    fn order(addresses: &[u64]) -> Vec<u64> {
        let limit = Limit::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(mut held) = pin!(limit.get_at(50)).poll(&mut context) else {
            panic!("nobody has a turn yet");
        };
        let waiting = addresses
            .iter()
            .map(|at| (*at, Box::pin(limit.get_at(*at))));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.iter_mut().for_each(|(_, turn)| {
            assert!(turn.as_mut().poll(&mut context).is_pending());
        });
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(held);
            let next = waiting
                .iter_mut()
                .enumerate()
                .find_map(
                    |(index, (_, turn))| match turn.as_mut().poll(&mut context) {
                        Poll::Ready(permit) => Some((index, permit)),
                        Poll::Pending => None,
                    },
                );
            let (index, permit) = next.expect("one of them has it");
            held = permit;
            order.push(waiting.remove(index).0);
        }
        order
    }

    #[test]
    fn turns_go_upwards_and_then_from_the_lowest_again() {
        assert_eq!(order(&[60, 10, 70, 55, 20]), [55, 60, 70, 10, 20]);
        assert_eq!(order(&[0, 0, 0]), [0, 0, 0]);
    }

    #[test]
    fn who_waits_behind_much_has_a_turn_all_the_same() {
        let mut addresses = vec![1];
        addresses.extend(100..200);
        let place = order(&addresses).iter().position(|at| *at == 1);
        assert!(
            place.is_some_and(|place| place < ELDEST as usize),
            "{place:?}"
        );
    }

    #[test]
    fn who_gives_up_waiting_leaves_the_turn_to_others() {
        let limit = Limit::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let held = limit.try_get().expect("the only one");
        let mut gone = Box::pin(limit.get());
        assert!(gone.as_mut().poll(&mut context).is_pending());
        let mut granted = Box::pin(limit.get());
        assert!(granted.as_mut().poll(&mut context).is_pending());
        drop(gone);
        drop(held);
        drop(granted);
        assert!(limit.try_get().is_some());
    }
}
