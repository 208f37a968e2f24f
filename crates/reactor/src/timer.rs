//! Sleeping tasks, in the order in which they are due.

use crate::Handle;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Deadlines; equal ones fire in the order in which they were set.
#[derive(Default)]
pub(crate) struct Timers {
    waiting: BTreeMap<(u64, u64), Waker>,
    sequence: u64,
}

impl Timers {
    fn set(&mut self, deadline_ns: u64, waker: Waker) -> (u64, u64) {
        self.sequence += 1;
        self.waiting.insert((deadline_ns, self.sequence), waker);
        (deadline_ns, self.sequence)
    }

    /// Moves those whose time has come to `due`.
    pub(crate) fn take_due(&mut self, now_ns: u64, due: &mut Vec<Waker>) {
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > now_ns {
                break;
            }
            due.push(entry.remove());
        }
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.waiting.keys().next().map(|key| key.0)
    }
}

/// Ends when the loop's clock shows a moment.
pub struct Sleep {
    handle: Handle,
    deadline_ns: u64,
    set: Option<(u64, u64)>,
}

impl Sleep {
    pub(crate) fn new(handle: Handle, deadline_ns: u64) -> Self {
        Self {
            handle,
            deadline_ns,
            set: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.handle.now_ns() >= self.deadline_ns {
            return Poll::Ready(());
        }
        let mut timers = self.handle.0.timers.borrow_mut();
        if let Some(key) = self.set {
            timers.waiting.remove(&key);
        }
        let key = timers.set(self.deadline_ns, context.waker().clone());
        drop(timers);
        self.set = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.set {
            self.handle.0.timers.borrow_mut().waiting.remove(&key);
        }
    }
}
