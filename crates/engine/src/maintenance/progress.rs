//! Progress of long-running work and requests to pause or cancel it, shared by the worker and its observers.

use reactor::Handle;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Interval of checking whether paused work is resumed, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// Progress of long-running work, and whether it is cancelled or paused.
#[derive(Default, Debug)]
pub struct Progress {
    /// Bytes done.
    pub done: AtomicU64,
    /// It is cancelled.
    cancel: AtomicBool,
    /// Its pool is being closed: it continues when that is opened again.
    closing: AtomicBool,
    /// It is paused.
    paused: AtomicBool,
}

impl Progress {
    /// Initial state: bytes done before, and whether it starts paused.
    pub fn start(&self, done: u64, paused: bool) {
        self.done.store(done, Ordering::Relaxed);
        self.pause(paused);
    }

    /// Cancels it.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Suspends it until its pool is opened again.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// Whether its pool is being closed.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Pauses or resumes it.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Whether it is paused now; cancelled work is not.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed) && !self.is_cancelled()
    }

    /// Waits while it is paused and `may` says so, on the caller's loop. The caller must not hold anything that others wait for.
    pub async fn rest(&self, handle: &Handle, may: impl Fn() -> bool) {
        while self.is_paused() && may() {
            handle.sleep(LOOK_NS).await;
        }
    }
}
