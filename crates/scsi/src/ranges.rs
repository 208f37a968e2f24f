//! Locks on ranges of a unit, so that what reads, compares and writes is one step for every other
//! writer (SBC-3 5.2, COMPARE AND WRITE; 5.16, ORWRITE).
//!
//! Responsible for: writers share a range, one that needs it alone waits for them and they for it,
//! in the order in which they came. Leaves out: reads, which take no lock, and writers that come
//! through other front ends.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

#[derive(Clone, PartialEq, Eq, Debug)]
struct Claim {
    range: Range<u64>,
    alone: bool,
}

impl Claim {
    fn conflicts(&self, other: &Self) -> bool {
        (self.alone || other.alone)
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

struct Waiting {
    number: u64,
    claim: Claim,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    held: Vec<Option<Claim>>,
    free: Vec<usize>,
    /// Claims held or waited for that want to be alone.
    alone: usize,
    waiting: VecDeque<Waiting>,
    numbers: u64,
}

impl State {
    fn hold(&mut self, claim: Claim) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.held[slot] = Some(claim);
                slot
            }
            None => {
                self.held.push(Some(claim));
                self.held.len() - 1
            }
        }
    }

    /// Whether `claim` has to wait, for what is held and for the first `before` of those waiting.
    fn is_blocked(&self, claim: &Claim, before: usize) -> bool {
        // Without exclusive claims: the usual case costs no search.
        if self.alone == 0 {
            return false;
        }
        let held = self.held.iter().flatten();
        let earlier = self.waiting.iter().take(before).map(|each| &each.claim);
        held.chain(earlier).any(|other| claim.conflicts(other))
    }
}

/// The locks of one unit.
#[derive(Default)]
pub(crate) struct Ranges(Mutex<State>);

/// A range that is held until this is dropped.
pub(crate) struct Held {
    ranges: Arc<Ranges>,
    slot: usize,
}

/// A place in the queue; left when dropped.
struct Place<'a> {
    ranges: &'a Ranges,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.ranges.lock();
        let at = state
            .waiting
            .iter()
            .position(|each| each.number == self.number);
        if let Some(gone) = at.and_then(|at| state.waiting.remove(at)) {
            state.alone -= usize::from(gone.claim.alone);
            wake_all(state);
        }
    }
}

fn wake_all(mut state: MutexGuard<'_, State>) {
    let wakers: Vec<Waker> = state
        .waiting
        .iter_mut()
        .filter_map(|each| each.waker.take())
        .collect();
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.ranges.lock();
        if let Some(claim) = state.held[self.slot].take() {
            state.alone -= usize::from(claim.alone);
            state.free.push(self.slot);
        }
        if !state.waiting.is_empty() {
            wake_all(state);
        }
    }
}

impl Ranges {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `range`, in bytes, shared with other writers, if there is no exclusive claim on it.
    pub(crate) fn try_share(self: &Arc<Self>, range: Range<u64>) -> Option<Held> {
        let claim = Claim {
            range,
            alone: false,
        };
        let mut state = self.lock();
        let all = state.waiting.len();
        if state.is_blocked(&claim, all) {
            return None;
        }
        let slot = state.hold(claim);
        let ranges = self.clone();
        Some(Held { ranges, slot })
    }

    /// Waits for `range`, in bytes: with other writers, or alone.
    pub(crate) async fn hold(self: &Arc<Self>, range: Range<u64>, alone: bool) -> Held {
        let claim = Claim { range, alone };
        let number = {
            let mut state = self.lock();
            if alone {
                state.alone += 1;
            }
            let all = state.waiting.len();
            // One that wants to be alone is counted already: then everything is examined.
            if !state.is_blocked(&claim, all) {
                let slot = state.hold(claim);
                let ranges = self.clone();
                return Held { ranges, slot };
            }
            state.numbers += 1;
            let number = state.numbers;
            state.waiting.push_back(Waiting {
                number,
                claim,
                waker: None,
            });
            number
        };
        let place = Place {
            ranges: self,
            number,
        };
        let slot = poll_fn(|context| {
            let mut state = self.lock();
            let found = state.waiting.iter().position(|each| each.number == number);
            let at = found.expect("it waits until it is granted");
            if state.is_blocked(&state.waiting[at].claim, at) {
                state.waiting[at].waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            let granted = state.waiting.remove(at).expect("it was found there");
            Poll::Ready(state.hold(granted.claim))
        })
        .await;
        drop(place);
        Held {
            ranges: self.clone(),
            slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Context;

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn writers_share_and_one_alone_waits_for_them() {
        let ranges = Arc::new(Ranges::default());
        let first = now(ranges.hold(0..10, false)).expect("nobody is there");
        let second = now(ranges.hold(5..15, false)).expect("writers share");
        let mut context = Context::from_waker(Waker::noop());
        let mut alone = Box::pin(ranges.hold(9..11, true));
        assert!(alone.as_mut().poll(&mut context).is_pending());
        assert!(
            now(ranges.hold(8..10, false)).is_none(),
            "who came later waits behind it"
        );
        assert!(
            now(ranges.hold(20..30, false)).is_some(),
            "elsewhere nobody waits"
        );
        drop(first);
        assert!(alone.as_mut().poll(&mut context).is_pending());
        drop(second);
        assert!(ranges.try_share(9..10).is_none() && ranges.try_share(20..30).is_some());
        let Poll::Ready(held) = alone.as_mut().poll(&mut context) else {
            panic!("all writers have gone")
        };
        assert!(now(ranges.hold(10..11, true)).is_none());
        drop(held);
        assert!(now(ranges.hold(10..11, true)).is_some());
        assert_eq!(ranges.lock().alone, 0, "every claim was given back");
    }

    #[test]
    fn who_gives_up_waiting_lets_the_others_go() {
        let ranges = Arc::new(Ranges::default());
        let held = now(ranges.hold(0..10, false)).expect("nobody is there");
        let mut context = Context::from_waker(Waker::noop());
        let mut alone = Box::pin(ranges.hold(0..1, true));
        assert!(alone.as_mut().poll(&mut context).is_pending());
        drop(alone);
        assert!(now(ranges.hold(0..1, false)).is_some());
        drop(held);
    }
}
