//! One value from one task to another of the same thread.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    closed: bool,
}

/// The end that gives the value.
pub struct Sender<T>(Rc<RefCell<State<T>>>);

/// The end that waits: `None` when the sender was dropped without a value.
pub struct Receiver<T>(Rc<RefCell<State<T>>>);

/// A new pair. It costs one small allocation, which is why the hot path keeps none across I/Os.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let state = Rc::new(RefCell::new(State {
        value: None,
        waker: None,
        closed: false,
    }));
    (Sender(state.clone()), Receiver(state))
}

impl<T> Sender<T> {
    /// Sends the value; it is dropped if the receiver is gone.
    pub fn send(self, value: T) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.borrow_mut();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.borrow_mut();
        if let Some(value) = state.value.take() {
            return Poll::Ready(Some(value));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
