//! Notification of each signal of an event descriptor.

use crate::Handle;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Notifies of signals of an event descriptor, several pending ones as one: the descriptor is not read, and the
/// kernel is asked once. Dropping it stops that.
pub struct Signals {
    handle: Handle,
    fd: RawFd,
    state: Rc<State>,
}

/// The kernel's error.
#[derive(Default)]
pub(crate) struct State {
    /// The request's name, while the kernel has it.
    asked: Cell<Option<u64>>,
    came: Cell<bool>,
    /// Why it ended, if by an error.
    failed: Cell<Option<i32>>,
    waker: RefCell<Option<Waker>>,
}

impl State {
    /// It was signalled, or the request failed; `goes_on` unless the kernel has given it up.
    pub(crate) fn signalled(&self, result: i32, goes_on: bool) {
        if result < 0 {
            self.failed.set(Some(-result));
        }
        self.came.set(true);
        if !goes_on {
            self.asked.set(None);
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Handle {
    /// Signals of the event descriptor `fd`, which has to stay open meanwhile. An unread one is the first.
    ///
    /// # Panics
    /// On a loop without a ring ([`Handle::simulated`]), when it is polled.
    pub fn signals(&self, fd: RawFd) -> Signals {
        Signals {
            handle: self.clone(),
            fd,
            state: Rc::default(),
        }
    }
}

impl Signals {
    /// Ready when it was signalled since it was last ready.
    ///
    /// # Errors
    /// When the kernel cannot wait for it.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = &self.state;
        if let Some(code) = state.failed.take() {
            return Poll::Ready(Err(io::Error::from_raw_os_error(code)));
        }
        if state.came.replace(false) {
            return Poll::Ready(Ok(()));
        }
        if state.asked.get().is_none() {
            let ring = self.handle.0.ring.as_ref().expect("a loop with a ring");
            state
                .asked
                .set(Some(ring.poll_signals(self.fd, state.clone())));
        }
        let mut waker = state.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if let (Some(name), Some(ring)) = (self.state.asked.get(), &self.handle.0.ring) {
            ring.cancel(name);
        }
    }
}
