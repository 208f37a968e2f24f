//! What listener, sessions and the export's owner know of each other.

use crate::tls::Tls;
use block::BlockDevice;
use reactor::Budget;
use std::collections::BTreeMap;
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
    connections: BTreeMap<u64, Connection>,
    next: u64,
}

struct Connection {
    /// A second descriptor of its socket, to end it from any thread.
    socket: UnixStream,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Handshake,
    /// It counts as one of those that the export may have.
    Admitted,
    /// It was ended for others, and is to leave.
    Ended,
}

impl State {
    fn count(&self, stage: Stage) -> usize {
        let all = self.connections.values();
        all.filter(|connection| connection.stage == stage).count()
    }
}

/// What may change while an export runs: it counts for connections to come.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Connections in transmission at most.
    pub connections: usize,
    pub tls: Option<Tls>,
}

/// One export, from every side.
pub(crate) struct Shared {
    pub name: String,
    pub volume: String,
    pub device: Arc<dyn BlockDevice>,
    /// What may change while the export runs.
    settings: Mutex<Settings>,
    /// What memory sessions may take together.
    pub memory: Budget,
    /// The volume's size in bytes, refreshed at each change.
    size: AtomicU64,
    /// Changed under the lock.
    stopping: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
}

/// Connections that may be in their handshake; with one more, the one that has taken longest ends.
const HANDSHAKES_MAX: usize = 64;

/// A connection in the list; leaves it when dropped.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().connections.remove(&self.number);
        self.shared.ended.notify_all();
    }
}

impl Seat {
    /// Counts the connection as one of those that the export may have; false when there are as many already.
    pub(crate) fn admit(&self) -> bool {
        let most = self.shared.settings().connections;
        let mut state = self.shared.lock();
        let is_free = state.count(Stage::Admitted) < most;
        let Some(connection) = state.connections.get_mut(&self.number) else {
            return false;
        };
        if connection.stage == Stage::Handshake && is_free {
            connection.stage = Stage::Admitted;
        }
        connection.stage == Stage::Admitted
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
    pub(crate) fn new(
        (name, volume): (String, String),
        device: Arc<dyn BlockDevice>,
        memory: Budget,
        settings: Settings,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            volume,
            size: AtomicU64::new(device.geometry().size),
            device,
            settings: Mutex::new(settings),
            memory,
            stopping: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn settings(&self) -> Settings {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.clone()
    }

    pub(crate) fn change(&self, settings: Settings) {
        let mut known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        *known = settings;
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

    /// A seat for a connection that begins its handshake, unless the export ends.
    pub(crate) fn sit(self: &Arc<Self>, fd: BorrowedFd<'_>) -> Option<Seat> {
        let socket = fd.try_clone_to_owned().ok()?.into();
        let mut state = self.lock();
        if self.is_stopping() {
            return None;
        }
        if state.count(Stage::Handshake) >= HANDSHAKES_MAX
            && let Some(oldest) =
                (state.connections.values_mut()).find(|one| one.stage == Stage::Handshake)
        {
            oldest.stage = Stage::Ended;
            let _ = oldest.socket.shutdown(Shutdown::Both);
        }
        state.next += 1;
        let number = state.next;
        let connection = Connection {
            socket,
            stage: Stage::Handshake,
        };
        state.connections.insert(number, connection);
        Some(Seat {
            shared: self.clone(),
            number,
        })
    }

    pub(crate) fn sessions(&self) -> usize {
        self.lock().count(Stage::Admitted)
    }

    /// Ends the listener, and the sessions after what they have in flight.
    pub(crate) fn stop(&self) {
        let waker = {
            let mut state = self.lock();
            self.stopping.store(true, Ordering::Release);
            for connection in state.connections.values() {
                let _ = connection.socket.shutdown(Shutdown::Read);
            }
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the sessions whatever they do.
    pub(crate) fn cut(&self) {
        for connection in self.lock().connections.values() {
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until listener and sessions have ended. False when that takes longer than `limit`.
    pub(crate) fn wait_ended(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.listening || !state.connections.is_empty() {
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
