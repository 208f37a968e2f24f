//! Progress of long-running work and requests to pause or cancel it, shared by the worker and its observers.

use reactor::Handle;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Time between two looks whether paused work is to continue, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// How far long work is, and whether it shall end or rest.
#[derive(Default, Debug)]
pub struct Progress {
    /// Bytes done.
    pub done: AtomicU64,
    /// It shall end early.
    cancel: AtomicBool,
    /// Its pool is being closed: it continues when that is opened again.
    closing: AtomicBool,
    /// It shall rest.
    paused: AtomicBool,
}

impl Progress {
    /// Before it begins: bytes that were done before, and whether it rests at first.
    pub fn start(&self, done: u64, paused: bool) {
        self.done.store(done, Ordering::Relaxed);
        self.pause(paused);
    }

    /// Asks it to end early.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Whether it shall end early.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Asks it to end, and to continue when its pool is opened again.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// Whether its pool is being closed.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Asks it to rest, or to continue.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Whether it shall rest now; nothing rests that is to end.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed) && !self.is_cancelled()
    }

    /// Waits while it is paused and `may` says so, on the caller's loop. Nothing that others wait for may be held.
    pub async fn rest(&self, handle: &Handle, may: impl Fn() -> bool) {
        while self.is_paused() && may() {
            handle.sleep(LOOK_NS).await;
        }
    }
}
