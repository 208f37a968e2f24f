//! Flushes of one drive, by whoever writes to it: shards' parts of vdrives, and labels.
//!
//! A flush that fails may take with it what another one, under way at the same time, was to make durable,
//! and that one may be answered first. So a success counts once all that overlap have ended, and none
//! of them failed; after a failure no later one is believed.

use block::DriveError;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use units::mutation::{Mutation, is_on};

/// The flushes of one drive, of all threads.
#[derive(Debug, Default)]
pub struct Flushing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    under_way: BTreeSet<u64>,
    failed: bool,
    waiting: Vec<Waker>,
}

/// A flush under way; one that is given up counts as failed.
struct UnderWay<'a> {
    of: &'a Flushing,
    number: u64,
}

impl UnderWay<'_> {
    fn end(&self, failed: bool) {
        let mut state = self.of.state();
        if state.under_way.remove(&self.number) {
            state.failed |= failed;
            state.waiting.drain(..).for_each(Waker::wake);
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.end(true);
    }
}

impl Flushing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a flush has failed: what the drive still has of the writes before it is unknown.
    pub fn has_failed(&self) -> bool {
        self.state().failed
    }

    /// Does a flush, and waits for those that are under way when it ends. One that failed before this one
    /// began says nothing of what was written since: whether that counts is the caller's to know.
    ///
    /// # Errors
    /// What the drive said, or `Gone` when one that overlaps failed.
    pub async fn run(
        &self,
        flush: impl Future<Output = Result<(), DriveError>>,
    ) -> Result<(), DriveError> {
        let (own, before) = {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            state.under_way.insert(number);
            (UnderWay { of: self, number }, state.failed)
        };
        let result = flush.await;
        own.end(result.is_err());
        result?;
        let mut others = match is_on(Mutation::FlushOverlap) {
            true => BTreeSet::new(),
            false => self.state().under_way.clone(),
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
        match self.has_failed() && !before {
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
            let mut one = Box::pin(flushing.run(one));
            let mut two = Box::pin(flushing.run(two));
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
    fn one_that_nobody_waits_for_any_more_counts_as_failed() {
        let flushing = Flushing::default();
        let (_answer, asked) = drive();
        let mut given_up = Box::pin(flushing.run(asked));
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        assert!(flushing.has_failed());
        let (answer, later) = drive();
        answer.send(Ok(())).unwrap();
        assert!(flushing.run(later).now_or_never().unwrap().is_ok());
    }
}
