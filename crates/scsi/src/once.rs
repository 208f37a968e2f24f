//! One value from any thread to one task.

use crate::unit::lock;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// Where the value goes.
pub struct Once<T>(Mutex<Slot<T>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(Mutex::new(Slot {
            value: None,
            waker: None,
        }))
    }
}

impl<T> Once<T> {
    /// Returns the value.
    pub fn give(&self, value: T) {
        let waker = {
            let mut slot = lock(&self.0);
            slot.value = Some(value);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for the value.
    pub async fn take(&self) -> T {
        poll_fn(|context| {
            let mut slot = lock(&self.0);
            match slot.value.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    slot.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
