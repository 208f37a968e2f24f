//! Requests in flight of one file: bounded in number and bytes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Requests in flight of one file; further ones wait in the kernel.
const REQUESTS_MAX: usize = 512;
/// Bytes of memory that they may hold.
const BYTES_MAX: usize = 128 << 20;

#[derive(Default)]
struct State {
    requests: usize,
    bytes: usize,
}

/// The count of one file.
#[derive(Default)]
pub(crate) struct Flight {
    state: Mutex<State>,
    changed: Condvar,
}

/// A request in flight; ends when dropped.
pub(crate) struct Permit {
    flight: Arc<Flight>,
    bytes: usize,
}

impl Flight {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request that holds `bytes`, when there is room for it. It blocks a thread that
    /// takes requests from the kernel, and no completion needs that thread.
    pub(crate) fn begin(self: &Arc<Self>, bytes: usize) -> Permit {
        let mut state = self.lock();
        while state.requests >= REQUESTS_MAX || state.bytes > 0 && state.bytes + bytes > BYTES_MAX {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.requests += 1;
        state.bytes += bytes;
        Permit {
            flight: self.clone(),
            bytes,
        }
    }

    /// Waits until nothing is in flight. False when that takes longer than `limit`.
    pub(crate) fn wait_idle(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.requests > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        state.requests -= 1;
        state.bytes -= self.bytes;
        drop(state);
        self.flight.changed.notify_all();
    }
}
