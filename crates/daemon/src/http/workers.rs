//! Threads in which requests are carried out: so many for each way to the daemon, so that no listener keeps another one
//! from being served, and so many of them for one caller.
//!
//! Whoever waits for a thread waits as a future: a request whose connection is closed meanwhile is never begun. What is
//! begun ends, and holds its thread until then. Nothing that is carried out here waits for another request to begin.

use super::gate::Door;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// Requests that are carried out at a time for each listener, and of them for one caller (user or token).
const DOOR_MAX: usize = 32;
const CALLER_MAX: usize = 24;
/// Threads that all of them take at most.
pub const WORKERS_MAX: usize = 2 * DOOR_MAX;

/// The threads of one listener.
struct Shift {
    all: Arc<Semaphore>,
    callers: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

impl Default for Shift {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(DOOR_MAX)),
            callers: Mutex::default(),
        }
    }
}

impl Shift {
    /// What bounds a caller's requests.
    fn of(&self, who: &str) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = callers.get(who).and_then(Weak::upgrade) {
            return known;
        }
        callers.retain(|_, known| known.strong_count() > 0);
        let new = Arc::new(Semaphore::new(CALLER_MAX));
        callers.insert(who.to_owned(), Arc::downgrade(&new));
        new
    }

    async fn run<T: Send + 'static>(
        &self,
        who: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // Neither semaphore is ever closed. Its own place first: who has none holds none of the listener's.
        let own = self.of(who).acquire_owned().await;
        let all = Arc::clone(&self.all).acquire_owned().await;
        spawn_blocking(move || {
            let done = work();
            drop((own, all));
            done
        })
        .await
    }
}

/// The threads of all listeners.
#[derive(Default)]
pub struct Workers {
    socket: Shift,
    network: Shift,
}

impl Workers {
    /// Carries out something for a caller, when there is a thread for it.
    ///
    /// # Errors
    /// When it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        (door, who): (Door, &str),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let shift = match door {
            Door::Socket(_) => &self.socket,
            Door::Network(_) | Door::Figures => &self.network,
        };
        shift.run(who, work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::net::Ipv4Addr;
    use std::pin::{Pin, pin};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    type Running<'a> = Pin<Box<dyn Future<Output = Result<(), JoinError>> + 'a>>;

    fn poll(future: &mut Running<'_>) -> bool {
        let context = &mut Context::from_waker(Waker::noop());
        future.as_mut().poll(context).is_ready()
    }

    #[test]
    fn callers_and_listeners_leave_threads_to_others_and_what_is_dropped_is_not_begun() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let workers = Workers::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let (gate, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let network = Door::Network(Ipv4Addr::LOCALHOST.into());
        let ask = |door, who: &'static str| -> Running<'_> {
            let (begun, wait) = (Arc::clone(&begun), Arc::clone(&wait));
            Box::pin(workers.run((door, who), move || {
                begun.fetch_add(1, Ordering::SeqCst);
                // The gate is opened by its sender's end.
                let _ = wait.lock().unwrap().recv();
            }))
        };
        let mut asked: Vec<Running<'_>> = Vec::new();
        let mut more = |door, who, count: usize| {
            asked.extend((0..count).map(|_| {
                let mut running = ask(door, who);
                assert!(!poll(&mut running));
                running
            }));
        };
        let free = |shift: &Shift| shift.all.available_permits();
        more(network, "a", 100);
        assert_eq!(free(&workers.network), DOOR_MAX - CALLER_MAX);
        more(network, "b", 100);
        assert_eq!(
            (free(&workers.network), free(&workers.socket)),
            (0, DOOR_MAX)
        );
        more(Door::Socket(0), "a", 1);
        assert_eq!(free(&workers.socket), DOOR_MAX - 1);
        // Those that wait are dropped, those that were begun are held until they end.
        drop(asked);
        drop(gate);
        let mut last = pin!(workers.run((network, "c"), || ()));
        runtime.block_on(&mut last).unwrap();
        runtime.block_on(async {
            let all = u32::try_from(DOOR_MAX).unwrap();
            let _every = workers.network.all.acquire_many(all).await;
            let _socket = workers.socket.all.acquire_many(all).await;
        });
        assert_eq!(begun.load(Ordering::SeqCst), DOOR_MAX + 1);
    }
}
