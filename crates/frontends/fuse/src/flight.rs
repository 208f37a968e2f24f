//! Limits of the requests in flight of a file: number, and memory within the budgets of the volume
//! and the daemon.

use reactor::{Account, Budget, OWN, control};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum requests in flight of a file; further ones wait in the kernel.
const REQUESTS_MAX: usize = 512;

/// Requests in flight of a file.
pub(crate) struct Flight {
    memory: Budget,
    requests: Mutex<usize>,
    changed: Condvar,
}

/// A request in flight, until it is dropped.
pub(crate) struct Permit {
    flight: Arc<Flight>,
    /// Its share of the budgets; small requests need none.
    _memory: Option<Account>,
}

impl Flight {
    pub(crate) fn new(memory: Budget) -> Arc<Self> {
        Arc::new(Self {
            memory,
            requests: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request that holds `bytes`, waiting for room. Blocks a thread that reads requests
    /// from the kernel, which no completion depends on.
    pub(crate) fn begin(self: &Arc<Self>, bytes: usize) -> Permit {
        let mut requests = self.lock();
        while *requests >= REQUESTS_MAX {
            requests = self
                .changed
                .wait(requests)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *requests += 1;
        drop(requests);
        let mut permit = Permit {
            flight: self.clone(),
            _memory: None,
        };
        if bytes > OWN {
            let account = Account::new([self.memory.clone()]);
            if !account.try_take(bytes) {
                control::wait(account.take(bytes));
            }
            permit._memory = Some(account);
        }
        permit
    }

    /// Waits until nothing is in flight. False if that takes longer than `limit`.
    pub(crate) fn wait_idle(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut requests = self.lock();
        while *requests > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            requests = self
                .changed
                .wait_timeout(requests, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.flight.lock() -= 1;
        self.flight.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn long_requests_share_memory_and_short_ones_do_not_wait() {
        let daemon = Budget::new(1 << 20);
        let others = Account::new([daemon.clone()]);
        assert!(others.try_take(900 << 10));
        let flight = Flight::new(daemon.part(512 << 10));
        let short: Vec<Permit> = (0..100).map(|_| flight.begin(OWN)).collect();
        let (give, take) = channel();
        let theirs = flight.clone();
        let thread = std::thread::spawn(move || give.send(theirs.begin(512 << 10)));
        while daemon.waiting() == 0 {
            std::thread::yield_now();
        }
        assert!(take.try_recv().is_err(), "the memory is in use");
        others.give(900 << 10);
        let long = take.recv_timeout(Duration::from_secs(60)).unwrap();
        thread.join().unwrap().unwrap();
        assert!(daemon.used() > 0 && !flight.wait_idle(Duration::ZERO));
        drop((short, long));
        assert!(daemon.used() == 0 && flight.wait_idle(Duration::ZERO));
    }
}
