//! Shared metrics scrapes: gathered once for all waiting callers, one scrape at a time.
//!
//! A request that arrives during a scrape gets the next one, which begins later: metrics are never
//! older than the request. If all callers have left, the scrape is skipped. The text is shared by
//! its readers and freed with the last.

use crate::{Format, Manager};
use api::v1::{Problem, ProblemCode};
use hyper::body::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// Number of worker threads.
pub const SCRAPE_WORKERS: usize = 1;
/// Pause after a scrape in multiples of its duration, at most [`REST_MAX`]: scrapes use at most a
/// fifth of a core and of the shards' time, regardless of the number of callers.
const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(1);

struct CachedScrape {
    format: Format,
    number: u64,
    text: Bytes,
}

#[derive(Default)]
struct State {
    /// Number of waiting callers.
    waiting: usize,
    /// Number of scrapes begun.
    begun: u64,
    /// The newest scrape in each format, while callers wait.
    kept: Vec<CachedScrape>,
}

/// The metrics of a daemon.
pub struct Scrapes {
    manager: Arc<Manager>,
    /// Held during a scrape; the earliest time of the next one.
    turn: Arc<tokio::sync::Mutex<Instant>>,
    state: Arc<Mutex<State>>,
}

/// A waiting caller, with the number of scrapes begun when it arrived.
struct Waiting<'a> {
    state: &'a Mutex<State>,
    begun: u64,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.waiting -= 1;
        if state.waiting == 0 {
            state.kept.clear();
        }
    }
}

impl Waiting<'_> {
    fn begin(state: &Mutex<State>) -> Waiting<'_> {
        let mut locked = lock(state);
        locked.waiting += 1;
        let begun = locked.begun;
        drop(locked);
        Waiting { state, begun }
    }

    /// A scrape that another caller has run since.
    fn gathered(&self, format: Format) -> Option<Bytes> {
        let state = lock(self.state);
        let fresh = |kept: &&CachedScrape| kept.format == format && kept.number > self.begun;
        state.kept.iter().find(fresh).map(|kept| kept.text.clone())
    }
}

impl Scrapes {
    /// Metrics of a manager.
    pub fn new(manager: &Arc<Manager>) -> Self {
        Self {
            manager: Arc::clone(manager),
            turn: Arc::new(tokio::sync::Mutex::new(Instant::now())),
            state: Arc::default(),
        }
    }

    /// All metrics, gathered after this call.
    ///
    /// # Errors
    /// As the engine's.
    pub async fn text(&self, format: Format) -> Result<Bytes, Problem> {
        let waiting = Waiting::begin(&self.state);
        let mut turn = Arc::clone(&self.turn).lock_owned().await;
        if let Some(text) = waiting.gathered(format) {
            return Ok(text);
        }
        sleep_until(*turn).await;
        let (manager, state) = (Arc::clone(&self.manager), Arc::clone(&self.state));
        // The lock is moved into the task: even if all callers leave, the next scrape does not
        // begin before this one has ended.
        let gathering = spawn_blocking(move || {
            let number = {
                let mut state = lock(&state);
                state.begun += 1;
                state.begun
            };
            let began = Instant::now();
            let text = manager.metrics.gather(format).map(Bytes::from);
            let ended = Instant::now();
            *turn = ended + (ended.duration_since(began) * REST).min(REST_MAX);
            let mut state = lock(&state);
            state.kept.retain(|kept| kept.format != format);
            if let (Ok(text), true) = (&text, state.waiting > 0) {
                let text = text.clone();
                state.kept.push(CachedScrape {
                    format,
                    number,
                    text,
                });
            }
            text
        });
        gathering.await.unwrap_or_else(|_| {
            Err(Problem::new(
                ProblemCode::Internal,
                "internal error: see the daemon's log",
            ))
        })
    }
}
