//! Worker threads that execute requests, with a quota per listener, so that no listener starves
//! another, and per caller.
//!
//! A request waits for a thread as a future: if its connection is closed meanwhile, it never
//! begins. Once begun it runs to its end and holds its thread. Nothing executed here waits for
//! another request to begin.

use super::gate::Door;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// Maximum concurrent requests per listener, and per caller (user or token).
const DOOR_MAX: usize = 32;
const CALLER_MAX: usize = 24;
/// Maximum number of threads.
pub const WORKERS_MAX: usize = 2 * DOOR_MAX;

/// The quota of one listener.
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
    /// The semaphore of a caller.
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
        // The semaphores are never closed. The caller's permit comes first: callers over their
        // quota hold none of the listener's.
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

/// The worker threads of all listeners.
#[derive(Default)]
pub struct Workers {
    socket: Shift,
    network: Shift,
}

impl Workers {
    /// Executes work for a caller once a thread is available.
    ///
    /// # Errors
    /// When the work panicked.
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
    fn worker_quotas_are_fair_and_dropped_requests_never_begin() {
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
                // The gate opens when its sender is dropped.
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
        // Waiting work is dropped; running work keeps its threads to its end.
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
