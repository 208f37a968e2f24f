//! Jobs that the daemon does itself, as they go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// How far such a job is.
pub struct Own {
    done: AtomicU64,
    cancel: AtomicBool,
    /// How it ended: well, or why not.
    end: Mutex<Option<Result<(), String>>>,
    began: Instant,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            done: AtomicU64::new(0),
            cancel: AtomicBool::new(false),
            end: Mutex::default(),
            began: Instant::now(),
        }
    }
}

impl Own {
    /// Bytes done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes a second since it began.
    pub fn rate(&self) -> u64 {
        (self.done() as f64 / self.began.elapsed().as_secs_f64().max(0.001)) as u64
    }

    /// Asks it to end.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// How it ended, and whether it was asked to.
    pub fn ended(&self) -> Option<(Result<(), String>, bool)> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let cancelled = self.cancel.load(Ordering::Relaxed);
        end.clone().map(|end| (end, cancelled))
    }
}

/// Writes down at once that a job has ended.
pub(super) type OnEnd = Box<dyn Fn() + Send + Sync>;

/// The job's own end of it. One that is dropped before it ended has failed.
pub struct OwnJob {
    own: Arc<Own>,
    on_end: OnEnd,
}

impl OwnJob {
    /// The other end of this; `on_end` is called once it has ended.
    pub(super) fn new(own: &Arc<Own>, on_end: OnEnd) -> Self {
        Self {
            own: Arc::clone(own),
            on_end,
        }
    }

    /// Says how far it is, in bytes.
    pub fn advance(&self, done: u64) {
        self.own.done.store(done, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_cancelled(&self) -> bool {
        self.own.cancel.load(Ordering::Relaxed)
    }

    /// Says how it ended; what was said first counts. It is kept when this returns: a daemon that is killed then does not
    /// tell the next one that the job was still running.
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
        self.end(Err("the other side left before its end".to_owned()));
    }
}
