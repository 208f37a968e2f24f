//! Waiting for one another, among tasks of one thread.

use std::cell::{Cell, RefCell};
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
    /// It happens: every task that waits continues.
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
