//! Waiting for one another, among tasks of one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
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

/// At most so many at a time; the others wait in the order in which they came.
#[derive(Clone)]
pub struct Limit(Rc<LimitState>);

struct LimitState {
    free: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Turn>>>,
}

#[derive(Default)]
struct Turn {
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
            self.limit
                .waiting
                .borrow_mut()
                .retain(|turn| !Rc::ptr_eq(turn, &self.turn));
        }
    }
}

impl LimitState {
    fn give(&self) {
        match self.waiting.borrow_mut().pop_front() {
            Some(turn) => {
                turn.granted.set(true);
                if let Some(waker) = turn.waker.take() {
                    waker.wake();
                }
            }
            None => self.free.set(self.free.get() + 1),
        }
    }
}

impl Limit {
    /// A limit of `count`.
    pub fn new(count: usize) -> Self {
        Self(Rc::new(LimitState {
            free: Cell::new(count),
            waiting: RefCell::default(),
        }))
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
        if let Some(permit) = self.try_get() {
            return permit;
        }
        let turn = Rc::new(Turn::default());
        self.0.waiting.borrow_mut().push_back(turn.clone());
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
}
