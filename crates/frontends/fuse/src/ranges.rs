//! Range locks of a file.
//!
//! A write of a partial LBA is a read-modify-write. A concurrent write to the same LBA could be
//! lost, so such a range is locked exclusively. Writes of whole LBAs share their locks.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

struct Entry {
    number: u64,
    range: Range<u64>,
    alone: bool,
}

impl Entry {
    fn conflicts(&self, other: &Self) -> bool {
        (self.alone || other.alone)
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

struct Waiting {
    entry: Entry,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    next: u64,
    active: Vec<Entry>,
    waiting: VecDeque<Waiting>,
}

impl State {
    fn is_free(&self, entry: &Entry, waiting_before: usize) -> bool {
        let mut before = self.waiting.iter().take(waiting_before);
        !self.active.iter().any(|held| held.conflicts(entry))
            && !before.any(|waiting| waiting.entry.conflicts(entry))
    }

    fn entry(&mut self, range: Range<u64>, alone: bool) -> Entry {
        self.next += 1;
        Entry {
            number: self.next,
            range,
            alone,
        }
    }
}

/// The locked ranges of a file.
#[derive(Default)]
pub(crate) struct Ranges(Mutex<State>);

/// A locked range, released when dropped.
pub(crate) struct Held {
    ranges: Arc<Ranges>,
    number: u64,
}

impl Ranges {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks `range` if possible without waiting.
    pub(crate) fn try_hold(self: &Arc<Self>, range: Range<u64>, alone: bool) -> Option<Held> {
        let mut state = self.lock();
        let entry = state.entry(range, alone);
        if !state.is_free(&entry, usize::MAX) {
            return None;
        }
        let number = entry.number;
        state.active.push(entry);
        Some(Held {
            ranges: self.clone(),
            number,
        })
    }

    /// Locks `range` after earlier conflicting locks (FIFO).
    pub(crate) async fn hold(self: &Arc<Self>, range: Range<u64>, alone: bool) -> Held {
        let held = {
            let mut state = self.lock();
            let entry = state.entry(range, alone);
            let number = entry.number;
            if state.is_free(&entry, usize::MAX) {
                state.active.push(entry);
            } else {
                state.waiting.push_back(Waiting { entry, waker: None });
            }
            Held {
                ranges: self.clone(),
                number,
            }
        };
        poll_fn(|context| {
            let mut state = self.lock();
            let mut waiting = state.waiting.iter_mut();
            match waiting.find(|waiting| waiting.entry.number == held.number) {
                Some(waiting) => {
                    waiting.waker = Some(context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
        held
    }

    fn give_back(&self, number: u64) {
        let mut wakers = Vec::new();
        {
            let mut state = self.lock();
            match state.active.iter().position(|held| held.number == number) {
                Some(index) => {
                    state.active.swap_remove(index);
                }
                None => state
                    .waiting
                    .retain(|waiting| waiting.entry.number != number),
            }
            let mut index = 0;
            while index < state.waiting.len() {
                if !state.is_free(&state.waiting[index].entry, index) {
                    index += 1;
                } else if let Some(waiting) = state.waiting.remove(index) {
                    state.active.push(waiting.entry);
                    wakers.extend(waiting.waker);
                }
            }
        }
        for waker in wakers {
            waker.wake();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ranges.give_back(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::Context;

    fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn whole_writes_share_and_partial_writes_exclude() {
        let ranges = Arc::new(Ranges::default());
        let first = ranges.try_hold(0..8, false).unwrap();
        let second = ranges.try_hold(4..12, false).unwrap();
        assert!(ranges.try_hold(7..9, true).is_none());
        let far = ranges.try_hold(12..13, true).unwrap();
        assert!(ranges.try_hold(12..20, false).is_none());
        drop((first, second, far));
        assert!(ranges.try_hold(0..20, true).is_some());
    }

    #[test]
    fn waiters_are_served_in_order() {
        let ranges = Arc::new(Ranges::default());
        let holder = ranges.try_hold(0..8, true).unwrap();
        let mut partial = pin!(ranges.hold(0..1, true));
        let mut whole = pin!(ranges.hold(0..8, false));
        assert!(poll(partial.as_mut()).is_none());
        assert!(poll(whole.as_mut()).is_none());
        drop(holder);
        assert!(
            poll(whole.as_mut()).is_none(),
            "the partial write came first"
        );
        assert!(ranges.try_hold(0..1, false).is_none(), "no overtaking");
        let held = poll(partial.as_mut()).unwrap();
        drop(held);
        assert!(poll(whole.as_mut()).is_some());
    }

    #[test]
    fn cancelled_waiter_blocks_nobody() {
        let ranges = Arc::new(Ranges::default());
        let holder = ranges.try_hold(0..8, true).unwrap();
        {
            let mut waiting = pin!(ranges.hold(0..8, true));
            assert!(poll(waiting.as_mut()).is_none());
        }
        drop(holder);
        assert!(ranges.try_hold(0..8, true).is_some());
    }
}
