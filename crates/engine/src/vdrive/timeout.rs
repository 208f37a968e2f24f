//! Requests that time out, and drives that are slow: detected, counted, reported.
//!
//! A request that has not ended after the deadline is answered with [`DriveError::Timeout`]. Its
//! buffer stays with the drive until that gives it back; what it says then is not examined. One
//! timer for all requests of a part, none while there are none. Time in which the loop itself stood
//! still (a stopped process, a starved machine) is not the drive's: its answer may long be there.

use super::DriveShared;
use super::pace::Pace;
use crate::control::types::DriveLimits;
use block::{DmaBuf, DriveError, DriveIoKind, DriveOutcome, DriveQueue, DriveQueueExt, Receiver};
use reactor::{Event, Handle};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

/// Most timed-out requests that have not ended; beyond it reads are also refused immediately: each keeps memory.
const LATE_MAX: usize = 64;
/// Longest request that counts as a small one, in bytes.
const SMALL: u64 = 64 << 10;
/// Kinds of requests with a pace of their own.
const PACES: usize = 5;
/// Steps in which a deadline passes: more of them notice sooner that the loop stood still.
const STEPS: u64 = 8;

/// Ends when the loop has run for `limit_ns`: a step that took longer than it should counts as one.
pub(crate) async fn patience(handle: &Handle, limit_ns: u64) {
    for _ in 0..STEPS {
        handle.sleep(limit_ns.div_ceil(STEPS)).await;
    }
}

#[derive(Default)]
struct Slot {
    since_ns: u64,
    waker: Option<Waker>,
    used: bool,
    late: bool,
}

#[derive(Default)]
struct Slots {
    all: Vec<Slot>,
    free: Vec<usize>,
}

/// The requests in flight of one thread to one part of a drive.
pub struct Watch {
    handle: Handle,
    limits: DriveLimits,
    drive: String,
    shared: Arc<DriveShared>,
    slots: RefCell<Slots>,
    late: RefCell<Vec<Receiver<DriveOutcome>>>,
    paces: [Pace; PACES],
    slow: Cell<bool>,
    /// The timer's task waits for a request.
    idle: Cell<bool>,
    woken: Event,
    /// The timer's task was begun, by the first request that was not completed immediately.
    timed: Cell<bool>,
    this: Weak<Self>,
}

impl Watch {
    /// For a part of `drive` (as people call it) whose counters are `shared`.
    pub fn new(handle: &Handle, drive: &str, shared: Arc<DriveShared>) -> Rc<Self> {
        Rc::new_cyclic(|this| Self {
            handle: handle.clone(),
            limits: shared.limits,
            drive: drive.to_owned(),
            shared,
            slots: RefCell::default(),
            late: RefCell::default(),
            paces: Default::default(),
            slow: Cell::new(false),
            idle: Cell::new(false),
            woken: Event::default(),
            timed: Cell::new(false),
            this: this.clone(),
        })
    }

    /// The loop of the thread.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sends a request and waits for its end, or for the deadline. Beside what came of it: nanoseconds that it took, 0 where
    /// it was completed, or refused, immediately.
    pub(super) async fn send(
        &self,
        queue: &Rc<dyn DriveQueue>,
        kind: DriveIoKind,
        offset: u64,
        buf: Option<DmaBuf>,
    ) -> (DriveOutcome, u64) {
        let late = self.late();
        // A timed-out write could overwrite later ones.
        if late >= LATE_MAX || (late > 0 && kind == DriveIoKind::Write) {
            return ((buf, Err(DriveError::Timeout)), 0);
        }
        let len = buf.as_ref().map_or(0, |buf| buf.len() as u64);
        let request = Request {
            watch: self,
            receiver: Some(queue.start(kind, offset, len, buf)),
            slot: None,
            pace: pace_of(kind, len),
            depth: self.waiting() + 1,
        };
        request.await
    }

    /// Whether timed-out requests have not ended yet.
    pub(super) fn has_late(&self) -> bool {
        self.late() > 0
    }

    /// Timed-out requests that have not ended yet.
    fn late(&self) -> usize {
        let mut late = self.late.borrow_mut();
        if !late.is_empty() {
            let mut context = Context::from_waker(Waker::noop());
            late.retain_mut(|receiver| Pin::new(receiver).poll(&mut context).is_pending());
        }
        late.len()
    }

    fn waiting(&self) -> usize {
        let slots = self.slots.borrow();
        slots.all.len() - slots.free.len()
    }

    fn take_slot(&self, waker: Waker) -> usize {
        let mut slots = self.slots.borrow_mut();
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(Slot::default());
            slots.all.len() - 1
        });
        slots.all[index] = Slot {
            since_ns: self.handle.now_ns(),
            waker: Some(waker),
            used: true,
            late: false,
        };
        drop(slots);
        if self.idle.replace(false) {
            self.woken.notify();
        } else if !self.timed.replace(true) {
            let patrol = patrol(self.handle.clone(), self.this.clone());
            self.handle.spawn(patrol);
        }
        index
    }

    /// Times out overdue requests; returns the next deadline.
    fn give_up_late(&self) -> Option<u64> {
        let now = self.handle.now_ns();
        let mut slots = self.slots.borrow_mut();
        let mut next = None;
        let mut count = 0;
        for slot in slots.all.iter_mut().filter(|slot| slot.used && !slot.late) {
            let due = slot.since_ns.saturating_add(self.limits.deadline_ns);
            if due > now {
                next = Some(next.map_or(due, |next: u64| next.min(due)));
                continue;
            }
            slot.late = true;
            count += 1;
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
        drop(slots);
        if count > 0 {
            self.shared.timeouts.fetch_add(count, Ordering::Relaxed);
            if !self.shared.silent.swap(true, Ordering::Relaxed) {
                let seconds = self.limits.deadline_ns / 1_000_000_000;
                tracing::warn!(drive = self.drive, "no answer within {seconds} s");
            }
        }
        next
    }

    /// Takes time in which the loop stood still off the age of every request.
    fn forgive(&self, stood_ns: u64) {
        let now = self.handle.now_ns();
        for slot in self.slots.borrow_mut().all.iter_mut() {
            slot.since_ns = slot.since_ns.saturating_add(stood_ns).min(now);
        }
    }

    /// Notes the end of a request; nanoseconds that it took.
    fn note(&self, pace: usize, since_ns: u64, depth: usize) -> u64 {
        let now = self.handle.now_ns();
        let took = now.saturating_sub(since_ns);
        self.paces[pace].note(now, took, depth, u64::from(self.limits.slow_factor));
        if self.shared.silent.load(Ordering::Relaxed) {
            self.shared.silent.store(false, Ordering::Relaxed);
        }
        let slow = self.paces.iter().any(|pace| pace.is_slow(now));
        if self.slow.replace(slow) == slow {
            return took;
        }
        if slow {
            self.shared.slow.fetch_add(1, Ordering::Relaxed);
            let factor = self.limits.slow_factor;
            tracing::warn!(
                drive = self.drive,
                "more than {factor} times slower than usual"
            );
        } else {
            self.shared.slow.fetch_sub(1, Ordering::Relaxed);
            tracing::info!(drive = self.drive, "as fast as usual again");
        }
        took
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.slow.get() {
            self.shared.slow.fetch_sub(1, Ordering::Relaxed);
        }
        self.woken.notify();
    }
}

fn pace_of(kind: DriveIoKind, len: u64) -> usize {
    match kind {
        DriveIoKind::Read => usize::from(len > SMALL),
        DriveIoKind::Write => 2 + usize::from(len > SMALL),
        DriveIoKind::Flush | DriveIoKind::Discard => 4,
    }
}

/// The timer: sleeps towards the oldest request's deadline, or until there is a request.
async fn patrol(handle: Handle, watch: Weak<Watch>) {
    while let Some(here) = watch.upgrade() {
        match here.give_up_late() {
            Some(due) => {
                let step = here.limits.deadline_ns.div_ceil(STEPS);
                let until = due.min(handle.now_ns().saturating_add(step));
                drop(here);
                handle.sleep_until(until).await;
                if let Some(here) = watch.upgrade() {
                    here.forgive(handle.now_ns().saturating_sub(until));
                }
            }
            None => {
                here.idle.set(true);
                let woken = here.woken.wait();
                drop(here);
                woken.await;
            }
        }
    }
}

/// A request in flight. One that completes immediately takes no slot and no timer.
struct Request<'a> {
    watch: &'a Watch,
    /// `None` once it timed out.
    receiver: Option<Receiver<DriveOutcome>>,
    slot: Option<usize>,
    pace: usize,
    depth: usize,
}

impl Future for Request<'_> {
    type Output = (DriveOutcome, u64);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self
            .receiver
            .as_mut()
            .map(|receiver| Pin::new(receiver).poll(context));
        if let Some(Poll::Ready(outcome)) = polled {
            let took = self.slot.map(|slot| {
                let since = self.watch.slots.borrow().all[slot].since_ns;
                self.watch.note(self.pace, since, self.depth)
            });
            let outcome = outcome.unwrap_or((None, Err(DriveError::Gone)));
            return Poll::Ready((outcome, took.unwrap_or(0)));
        }
        let Some(index) = self.slot else {
            self.slot = Some(self.watch.take_slot(context.waker().clone()));
            return Poll::Pending;
        };
        let watch = self.watch;
        let slot = &mut watch.slots.borrow_mut().all[index];
        if slot.late {
            watch.late.borrow_mut().extend(self.receiver.take());
            let took = watch.handle.now_ns().saturating_sub(slot.since_ns);
            return Poll::Ready(((None, Err(DriveError::Timeout)), took));
        }
        match &mut slot.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if let Some(index) = self.slot {
            let mut slots = self.watch.slots.borrow_mut();
            slots.all[index] = Slot::default();
            slots.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests;
