//! What passes between the control thread and the task that serves a ring.

use crate::event::{Bell, EventFd};
use crate::guest::Guest;
use crate::inflight::InflightQueue;
use crate::log::Log;
use crate::polling::Choice;
use crate::ring::Ring;
use crate::volume::Volume;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

/// What the control thread says to the task.
#[derive(Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    disconnected: AtomicBool,
    abandon: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Control {
    fn wake(&self) {
        let waker = self
            .waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// No request is taken any more; the task ends when those in flight have ended.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// As [`Control::stop`] when the front end is gone: what long requests have not begun is not done. They stay unanswered,
    /// and are taken up again when the front end connects again and shows its in-flight memory.
    pub(crate) fn disconnect(&self) {
        self.disconnected.store(true, Ordering::Release);
        self.stop();
    }

    pub(crate) fn disconnected(&self) -> bool {
        self.disconnected.load(Ordering::Acquire)
    }

    /// The task ends now; what is in flight is answered to nobody.
    pub(crate) fn abandon(&self) {
        self.abandon.store(true, Ordering::Release);
        self.stop();
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn abandoned(&self) -> bool {
        self.abandon.load(Ordering::Acquire)
    }

    pub(crate) fn listen(&self, context: &Context<'_>) {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !waker
            .as_ref()
            .is_some_and(|known| known.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
    }
}

/// How a ring was left.
pub(crate) struct Ended {
    /// The next entry of the available ring.
    pub(crate) next_avail: u16,
}

/// What a ring is served with.
pub(crate) struct Parts {
    pub(crate) index: u16,
    pub(crate) volume: Arc<Volume>,
    pub(crate) memory: Guest,
    pub(crate) ring: Ring,
    pub(crate) kick: Arc<EventFd>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) control: Arc<Control>,
    pub(crate) inflight: Option<InflightQueue>,
    /// Chains to serve first, which the last daemon took and did not answer.
    pub(crate) resubmit: Vec<u16>,
    pub(crate) polling: Arc<Choice>,
    /// Writes are durable before they are answered.
    pub(crate) write_through: Arc<AtomicBool>,
    /// A part of the memory was cut off its file.
    pub(crate) cut: Arc<AtomicBool>,
    pub(crate) log: Arc<Log>,
    /// Ends the session: called when the volume or the memory is gone.
    pub(crate) hang_up: Arc<dyn Fn() + Send + Sync>,
}
