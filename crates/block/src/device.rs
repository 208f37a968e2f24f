//! A volume as a front end sees it.

use crate::{IoBuf, IoError, Op};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Properties of a volume that are reported to hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Size in bytes, a multiple of the LBA size.
    pub size: u64,
    /// 512 or 4,096 bytes.
    pub lba_size: u32,
    /// The size in bytes that serves best: 4,096.
    pub block_size: u32,
    /// Writes are refused.
    pub read_only: bool,
    /// A stable name of the volume for serial numbers, at most 20 bytes of ASCII.
    pub serial: String,
}

/// Whether a range holds data, or has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationState {
    /// Written since it was last discarded.
    Data,
    /// Not allocated; reads as zeroes.
    Hole,
    /// Written or discarded since a snapshot.
    Changed,
    /// As in a snapshot.
    Same,
}

/// A run of one state in the result of [`crate::OpKind::Status`] or [`crate::OpKind::Changed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatusExtent {
    /// Length in bytes.
    pub len: u64,
    /// State of all of it.
    pub state: AllocationState,
}

/// An operation that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The operation's number.
    pub tag: u64,
    /// Its result.
    pub result: Result<(), IoError>,
    /// The operation's memory, given back.
    pub buf: IoBuf,
    /// For [`crate::OpKind::Status`] and [`crate::OpKind::Changed`]: runs in order that cover the range from its start, at least
    /// one and perhaps less than all of it. Empty for the other kinds.
    pub extents: Vec<StatusExtent>,
}

impl std::fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoBuf({} bytes)", self.len())
    }
}

/// Where completions go. Called on the shard's thread: it must neither block nor call back.
pub trait CompletionSink: Send + Sync {
    /// Takes one completion.
    fn complete(&self, completion: Completion);

    /// Takes several, and leaves none.
    fn complete_all(&self, completions: &mut VecDeque<Completion>) {
        completions.drain(..).for_each(|one| self.complete(one));
    }

    /// Whether the client still waits for the completions. Otherwise the rest of a long operation is cancelled: it ends
    /// with [`crate::ErrorKind::Gone`].
    fn is_wanted(&self) -> bool {
        true
    }
}

/// A volume that operations can be given to, from any thread.
pub trait BlockDevice: Send + Sync {
    /// The present properties of the volume; the size changes when it is resized.
    fn geometry(&self) -> Geometry;

    /// Takes an operation. Its completion arrives at its sink, perhaps before this returns.
    ///
    /// # Errors
    /// Gives the operation back when too many are in flight: try again after a completion.
    fn submit(&self, op: Op) -> Result<(), Op>;

    /// Wakes `waker` at the next change of the geometry or end of the volume; one waker a
    /// `listener` (any number that the caller keeps to), a later call replaces an earlier one.
    fn on_change(&self, listener: u64, waker: Waker);

    /// Whether the volume has ended for its front ends (deleted, pool exported, daemon stopping).
    fn is_gone(&self) -> bool;

    /// The snapshots that the volume can be compared with now: their names and their numbers for
    /// [`crate::OpKind::Changed`]. A number names the same content as long as the device is there: some
    /// time after its snapshot is deleted, operations with it fail.
    fn bases(&self) -> Vec<(String, u32)> {
        Vec::new()
    }
}

/// A [`CompletionSink`] that one task empties: the usual one for a session.
#[derive(Default)]
pub struct CompletionQueue {
    state: Mutex<QueueState>,
    given_up: AtomicBool,
}

#[derive(Default)]
struct QueueState {
    ready: VecDeque<Completion>,
    waker: Option<Waker>,
}

/// Moves all there is to the end of `into`. Mostly that is empty: the two exchange their memory then, and nothing is copied.
fn move_all(from: &mut VecDeque<Completion>, into: &mut VecDeque<Completion>) {
    if into.is_empty() {
        std::mem::swap(from, into);
    } else if !from.is_empty() {
        into.append(from);
    }
}

impl CompletionQueue {
    /// An empty queue.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The client has disconnected: work that has not begun need not be done. Completions arrive nevertheless.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a completion if one is there.
    pub fn try_next(&self) -> Option<Completion> {
        self.lock().ready.pop_front()
    }

    /// Takes all completions that are there.
    pub fn take(&self, into: &mut VecDeque<Completion>) {
        move_all(&mut self.lock().ready, into);
    }

    /// Waits for a completion. Only one task may wait at a time.
    pub async fn next(&self) -> Completion {
        poll_fn(|context| self.poll_next(context.waker())).await
    }

    /// Takes a completion, or leaves `waker` to be woken by the next one.
    pub fn poll_next(&self, waker: &Waker) -> Poll<Completion> {
        let mut state = self.lock();
        match state.ready.pop_front() {
            Some(completion) => Poll::Ready(completion),
            None => {
                if !state
                    .waker
                    .as_ref()
                    .is_some_and(|known| known.will_wake(waker))
                {
                    state.waker = Some(waker.clone());
                }
                Poll::Pending
            }
        }
    }
}

impl CompletionSink for CompletionQueue {
    fn complete(&self, completion: Completion) {
        let waker = {
            let mut state = self.lock();
            state.ready.push_back(completion);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn complete_all(&self, completions: &mut VecDeque<Completion>) {
        let waker = {
            let mut state = self.lock();
            move_all(completions, &mut state.ready);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_wanted(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completions(tags: impl Iterator<Item = u64>) -> VecDeque<Completion> {
        let one = |tag| Completion {
            tag,
            result: Ok(()),
            buf: IoBuf::empty(),
            extents: Vec::new(),
        };
        tags.map(one).collect()
    }

    #[test]
    fn completions_keep_their_order_whoever_has_some_left() {
        let queue = CompletionQueue::default();
        let mut taken = completions(0..1);
        for tags in [1..2, 2..5, 5..5, 5..7] {
            let mut ended = completions(tags);
            queue.complete_all(&mut ended);
            assert!(ended.is_empty(), "all of them were taken");
        }
        queue.take(&mut taken);
        queue.take(&mut taken);
        let tags: Vec<u64> = taken.drain(..).map(|one| one.tag).collect();
        assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6]);
        queue.complete_all(&mut completions(7..9));
        queue.take(&mut taken);
        assert_eq!(taken.len(), 2, "those that were taken are not there again");
    }
}
