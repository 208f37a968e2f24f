//! Jobs that the daemon itself runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Progress of such a job.
pub struct OwnJobState {
    done: AtomicU64,
    cancel: AtomicBool,
    /// Outcome, once it has finished.
    end: Mutex<Option<Result<(), String>>>,
    began: Instant,
}

impl Default for OwnJobState {
    fn default() -> Self {
        Self {
            done: AtomicU64::new(0),
            cancel: AtomicBool::new(false),
            end: Mutex::default(),
            began: Instant::now(),
        }
    }
}

impl OwnJobState {
    /// Bytes done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Mean bytes per second since it began.
    pub fn rate(&self) -> u64 {
        (self.done() as f64 / self.began.elapsed().as_secs_f64().max(0.001)) as u64
    }

    /// Requests cancellation.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Outcome, and whether cancellation was requested.
    pub fn ended(&self) -> Option<(Result<(), String>, bool)> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let cancelled = self.cancel.load(Ordering::Relaxed);
        end.clone().map(|end| (end, cancelled))
    }
}

/// Stores the list of jobs when one has ended.
pub(super) type OnEnd = Box<dyn Fn() + Send + Sync>;

/// Handle of the running job. Dropped without an outcome, the job has failed.
pub struct OwnJob {
    own: Arc<OwnJobState>,
    on_end: OnEnd,
}

impl OwnJob {
    /// A handle; `on_end` is called when the job has ended.
    pub(super) fn new(own: &Arc<OwnJobState>, on_end: OnEnd) -> Self {
        Self {
            own: Arc::clone(own),
            on_end,
        }
    }

    /// Reports progress, in bytes.
    pub fn advance(&self, done: u64) {
        self.own.done.store(done, Ordering::Relaxed);
    }

    /// Whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.own.cancel.load(Ordering::Relaxed)
    }

    /// Reports the outcome; the first report counts. It is stored when this returns, so that after
    /// a crash the job is not listed as running.
    pub fn end(&self, result: Result<(), String>) {
        let mut end = self.own.end.lock().unwrap_or_else(PoisonError::into_inner);
        if end.is_none() {
            *end = Some(result);
            drop(end);
            (self.on_end)();
        }
    }
}

impl Drop for OwnJob {
    fn drop(&mut self) {
        self.end(Err("the peer disconnected before the end".to_owned()));
    }
}
