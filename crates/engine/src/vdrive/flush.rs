//! Flushes of one drive by all its writers: shards' parts of vdrives, and labels.
//!
//! A flush that fails may take with it what another one, in progress at the same time, was to make durable,
//! and that one may be answered first. So a success counts once all that overlap have ended, and none
//! of them failed; after a failure no later one is believed.

use super::flush_cost::FlushCost;
use block::DriveError;
use smallvec::SmallVec;
use std::cell::Cell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use units::mutation::{Mutation, is_on};

/// The flushes of one drive, of all threads.
#[derive(Debug, Default)]
pub struct Flushing {
    state: Mutex<State>,
    /// Total bytes written to the drive at which an early flush pays; 0 before the first.
    due_at: AtomicU64,
    /// Time to leave between such flushes, in nanoseconds.
    pause_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    cost: FlushCost,
    /// Total bytes written when the last one began.
    written: u64,
    next: u64,
    /// Mostly one, or none.
    under_way: Numbers,
    failed: bool,
    waiting: Vec<Waker>,
}

/// Numbers of flushes.
type Numbers = SmallVec<[u64; 4]>;

/// A flush in progress; a dropped one counts as failed.
struct UnderWay<'a> {
    of: &'a Flushing,
    number: u64,
    has_ended: Cell<bool>,
}

impl UnderWay<'_> {
    fn end(&self, state: &mut State, failed: bool) {
        self.has_ended.set(true);
        state.under_way.retain(|number| *number != self.number);
        state.failed |= failed;
        state.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.has_ended.get() {
            self.end(&mut self.of.state(), true);
        }
    }
}

impl Flushing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so much was written since the last flush (`written`: total bytes) that the next one would
    /// take long, and an early one is due, `since_ns` after the caller's last.
    pub fn is_due(&self, written: impl FnOnce() -> u64, since_ns: u64) -> bool {
        let due_at = self.due_at.load(Ordering::Relaxed);
        let may_be = due_at > 0 && since_ns >= self.pause_ns.load(Ordering::Relaxed);
        may_be && written() >= due_at
    }

    fn set_due(&self, state: &State) {
        let due_at = state.written.saturating_add(state.cost.enough());
        self.due_at.store(due_at, Ordering::Relaxed);
        let pause_ns = state.cost.pause_ns();
        self.pause_ns.store(pause_ns, Ordering::Relaxed);
    }

    /// Whether a flush has failed: it is unknown which earlier writes the drive still has.
    pub fn has_failed(&self) -> bool {
        self.state().failed
    }

    /// Flushes, and waits for flushes that are in progress at its end. One that failed before this one
    /// began says nothing of what was written since: whether that counts is the caller's to know. `written`:
    /// bytes written to the drive so far, in all.
    ///
    /// # Errors
    /// The drive's error, or `Gone` when one that overlaps failed.
    pub async fn run(
        &self,
        written: u64,
        now_ns: impl Fn() -> u64,
        flush: impl Future<Output = Result<(), DriveError>>,
    ) -> Result<(), DriveError> {
        let (own, before, alone, new) = {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            let alone = state.under_way.is_empty();
            state.under_way.push(number);
            let new = written.saturating_sub(std::mem::replace(&mut state.written, written));
            self.set_due(&state);
            let own = UnderWay {
                of: self,
                number,
                has_ended: Cell::new(false),
            };
            (own, state.failed, alone, new)
        };
        let began = now_ns();
        let result = flush.await;
        let took_ns = alone.then(|| now_ns().saturating_sub(began));
        let mut others = {
            let mut state = self.state();
            own.end(&mut state, result.is_err());
            result?;
            if let Some(took_ns) = took_ns {
                state.cost.note(new, took_ns);
                self.set_due(&state);
            }
            let others = match is_on(Mutation::FlushOverlap) {
                true => Numbers::new(),
                false => state.under_way.clone(),
            };
            if others.is_empty() {
                return Self::outcome(state.failed && !before);
            }
            others
        };
        poll_fn(|context| {
            let mut state = self.state();
            others.retain(|other| state.under_way.contains(other));
            if others.is_empty() {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
        Self::outcome(self.has_failed() && !before)
    }

    /// Whether a flush that went well counts.
    fn outcome(has_failed: bool) -> Result<(), DriveError> {
        match has_failed {
            true => Err(DriveError::Gone),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_channel::oneshot;
    use futures_util::FutureExt;

    type Answer = oneshot::Sender<Result<(), DriveError>>;

    fn drive() -> (Answer, impl Future<Output = Result<(), DriveError>>) {
        let (answer, asked) = oneshot::channel();
        (answer, async {
            asked.await.unwrap_or(Err(DriveError::Gone))
        })
    }

    #[test]
    fn a_success_counts_once_all_that_overlap_have_ended() {
        for (other, counts) in [(Ok(()), true), (Err(DriveError::Os(5)), false)] {
            let flushing = Flushing::default();
            let ((first, one), (second, two)) = (drive(), drive());
            let mut one = Box::pin(flushing.run(0, || 0, one));
            let mut two = Box::pin(flushing.run(0, || 0, two));
            assert!((&mut one).now_or_never().is_none() && (&mut two).now_or_never().is_none());
            second.send(Ok(())).unwrap();
            assert!((&mut two).now_or_never().is_none(), "the first may fail");
            first.send(other).unwrap();
            assert_eq!(one.now_or_never().unwrap(), other);
            assert_eq!(two.now_or_never().unwrap().is_ok(), counts);
            assert_eq!(flushing.has_failed(), !counts);
        }
    }

    #[test]
    fn one_is_due_when_the_next_would_take_long_and_not_at_once() {
        let (flushing, clock) = (Flushing::default(), std::cell::Cell::new(0));
        let takes = |ms: u64| {
            clock.set(clock.get() + ms * 1_000_000);
            async { Ok(()) }
        };
        let one = |written: u64, ms: u64| {
            let flush = async { takes(ms).await };
            let run = flushing.run(written << 20, || clock.get(), flush);
            run.now_or_never().unwrap().unwrap();
        };
        assert!(
            !flushing.is_due(|| u64::MAX, u64::MAX),
            "nothing is known yet"
        );
        one(0, 1);
        for round in 1..10 {
            one(round * 16, 20);
        }
        assert!(
            !flushing.is_due(|| 144 << 20, u64::MAX),
            "nothing was written"
        );
        assert!(flushing.is_due(|| 160 << 20, u64::MAX));
        assert!(!flushing.is_due(|| 160 << 20, 10_000_000), "one just ended");
    }

    #[test]
    fn one_that_nobody_waits_for_any_more_counts_as_failed() {
        let flushing = Flushing::default();
        let (_answer, asked) = drive();
        let mut given_up = Box::pin(flushing.run(0, || 0, asked));
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        assert!(flushing.has_failed());
        let (answer, later) = drive();
        answer.send(Ok(())).unwrap();
        assert!(flushing.run(0, || 0, later).now_or_never().unwrap().is_ok());
    }
}
