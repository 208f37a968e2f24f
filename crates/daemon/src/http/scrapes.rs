//! Figures for everybody who asks: gathered once for all who wait, one time after the other.
//!
//! Who asks while figures are gathered gets the next ones, which begin after that: they are never older than the request.
//! Nothing is gathered for whoever left meanwhile, and the text is shared by all who read it, and freed with the last.

use crate::{Format, Manager};
use api::v1::{Problem, ProblemCode};
use hyper::body::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// Threads that this takes.
pub const SCRAPE_WORKERS: usize = 1;
/// After figures were gathered nothing is for so many times as long, at most [`REST_MAX`]: it takes a fifth of a core,
/// and of the shards' attention, however many ask.
const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(1);

struct Kept {
    format: Format,
    number: u64,
    text: Bytes,
}

#[derive(Default)]
struct State {
    /// Who waits for figures.
    waiting: usize,
    /// How often gathering was begun.
    begun: u64,
    /// The newest of each format, while somebody waits.
    kept: Vec<Kept>,
}

/// The figures of a daemon.
pub struct Scrapes {
    manager: Arc<Manager>,
    /// Held while figures are gathered; when the next may be.
    turn: Arc<tokio::sync::Mutex<Instant>>,
    state: Arc<Mutex<State>>,
}

/// One who waits, since so many were begun.
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

    /// What somebody else had gathered since.
    fn gathered(&self, format: Format) -> Option<Bytes> {
        let state = lock(self.state);
        let fresh = |kept: &&Kept| kept.format == format && kept.number > self.begun;
        state.kept.iter().find(fresh).map(|kept| kept.text.clone())
    }
}

impl Scrapes {
    /// Those of a manager.
    pub fn new(manager: &Arc<Manager>) -> Self {
        Self {
            manager: Arc::clone(manager),
            turn: Arc::new(tokio::sync::Mutex::new(Instant::now())),
            state: Arc::default(),
        }
    }

    /// All figures, as they are or after this was asked for.
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
        // The turn goes with it: also where nobody waits any more, nobody else begins before this has ended.
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
                state.kept.push(Kept {
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
                "the daemon could not do this: its log says more",
            ))
        })
    }
}
