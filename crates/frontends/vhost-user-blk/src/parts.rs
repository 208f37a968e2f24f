//! Communication between the control thread and the task of a ring.

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

/// Commands of the control thread to the task.
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

    /// Stop taking requests; the task ends when those in flight have completed.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// As [`Control::stop`] for a disconnected monitor: the rest of long requests is skipped. They
    /// remain unanswered, and are resumed when the monitor reconnects and passes its in-flight
    /// memory.
    pub(crate) fn disconnect(&self) {
        self.disconnected.store(true, Ordering::Release);
        self.stop();
    }

    pub(crate) fn disconnected(&self) -> bool {
        self.disconnected.load(Ordering::Acquire)
    }

    /// End the task immediately; requests in flight are not answered.
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

/// Final state of a ring.
pub(crate) struct Ended {
    /// Next index of the available ring.
    pub(crate) next_avail: u16,
}

/// Resources of a ring's task.
pub(crate) struct Parts {
    pub(crate) index: u16,
    pub(crate) volume: Arc<Volume>,
    pub(crate) memory: Guest,
    pub(crate) ring: Ring,
    pub(crate) kick: Arc<EventFd>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) control: Arc<Control>,
    pub(crate) inflight: Option<InflightQueue>,
    /// Chains to serve first, which the previous daemon took and did not answer.
    pub(crate) resubmit: Vec<u16>,
    pub(crate) polling: Arc<Choice>,
    /// Writes must be durable before they are answered.
    pub(crate) write_through: Arc<AtomicBool>,
    /// A part of the memory was truncated.
    pub(crate) cut: Arc<AtomicBool>,
    pub(crate) log: Arc<Log>,
    /// Ends the session: called when the volume or the memory is gone.
    pub(crate) hang_up: Arc<dyn Fn() + Send + Sync>,
}
