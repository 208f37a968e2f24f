//! What listener, sessions and the export's owner know of each other.

use block::BlockDevice;
use std::collections::HashMap;
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    /// The listener is open.
    listening: bool,
    waker: Option<Waker>,
    /// A second descriptor of each session's socket, to end it from any thread.
    sessions: HashMap<u64, UnixStream>,
    next: u64,
}

/// One export, from every side.
pub(crate) struct Shared {
    pub name: String,
    pub volume: String,
    pub device: Arc<dyn BlockDevice>,
    /// The volume's size in bytes, refreshed at each change.
    size: AtomicU64,
    /// Changed under the lock.
    stopping: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
}

/// A session in the list; leaves it when dropped.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().sessions.remove(&self.number);
        self.shared.ended.notify_all();
    }
}

/// Marks the listener as open; closed when dropped.
pub(crate) struct Listening(Arc<Shared>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.lock().listening = false;
        self.0.ended.notify_all();
    }
}

impl Shared {
    pub(crate) fn new(name: String, volume: String, device: Arc<dyn BlockDevice>) -> Arc<Self> {
        Arc::new(Self {
            name,
            volume,
            size: AtomicU64::new(device.geometry().size),
            device,
            stopping: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    pub(crate) fn refresh_size(&self) {
        self.size
            .store(self.device.geometry().size, Ordering::Relaxed);
    }

    pub(crate) fn listening(self: &Arc<Self>) -> Listening {
        self.lock().listening = true;
        Listening(self.clone())
    }

    /// Leaves `waker` to be woken by [`Shared::stop`]; tells whether it has happened already.
    pub(crate) fn watch(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        state.waker = Some(waker.clone());
        self.is_stopping()
    }

    /// A seat for a connection, unless all `max` are taken or the export ends.
    pub(crate) fn sit(self: &Arc<Self>, fd: BorrowedFd<'_>, max: usize) -> Option<Seat> {
        let second = fd.try_clone_to_owned().ok()?;
        let mut state = self.lock();
        if self.is_stopping() || state.sessions.len() >= max {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.sessions.insert(number, second.into());
        Some(Seat {
            shared: self.clone(),
            number,
        })
    }

    pub(crate) fn sessions(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Ends the listener, and the sessions after what they have in flight.
    pub(crate) fn stop(&self) {
        let waker = {
            let mut state = self.lock();
            self.stopping.store(true, Ordering::Release);
            for socket in state.sessions.values() {
                let _ = socket.shutdown(Shutdown::Read);
            }
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the sessions whatever they do.
    pub(crate) fn cut(&self) {
        for socket in self.lock().sessions.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until listener and sessions have ended. False when that takes longer than `limit`.
    pub(crate) fn wait_ended(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.listening || !state.sessions.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .ended
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}
