//! Fills of the RAM cache that are in progress or wait for their turn.
//!
//! Three bounds: reads of dense regions in flight ([`STREAMS`]), each of a chunk at most, which the disk serves as its head
//! goes; chunks that wait to be read ahead; and the sequence prefetcher, which reads one extent at a time and
//! only while no stream is in use. A host that waits for blocks of another one's fill calls
//! [`Fills::until_filled`] before it checks which those are; every fill that ends, successfully or not, wakes all of them.

use reactor::{Event, Handle, Limit, Permit, Urgency};
use std::cell::Cell;
use std::ops::Range;

/// Reads of dense regions in flight at a time, of a chunk at most each: enough for a disk to read on.
pub(crate) const STREAMS: usize = 12;
/// Most chunks that wait for their turn to be read ahead. Reads may wait for their extents, too.
const AHEAD_MOST: usize = 1024;

/// A shard's fills.
pub(crate) struct Fills {
    filled: Event,
    streams: Limit,
    /// Chunks that are being read ahead, or wait for it.
    ahead: Cell<usize>,
    /// A sequence may continue: the prefetcher has to check.
    prefetcher: Event,
}

impl Fills {
    /// No fills yet.
    pub fn new(handle: &Handle) -> Self {
        Self {
            filled: Event::default(),
            streams: Limit::timed(STREAMS, STREAMS, handle),
            ahead: Cell::new(0),
            prefetcher: Event::default(),
        }
    }

    /// Waits until a fill ends, from this call on.
    pub fn until_filled(&self) -> impl Future<Output = ()> + use<> {
        self.filled.wait()
    }

    /// A fill has ended: waiters check again.
    pub fn wake(&self) {
        self.filled.notify();
    }

    /// Waits for the turn of a read in a dense region at this block.
    pub fn stream_at(&self, block: u64, urgency: Option<Urgency>) -> impl Future<Output = Permit> {
        self.streams.get_at(block, urgency)
    }

    /// Reads at these blocks that wait for their turn have become more urgent.
    pub(super) fn hurry(&self, blocks: Range<u64>, urgency: Urgency) {
        self.streams.hurry(blocks, urgency);
    }

    /// Whether a dense region is being read.
    pub(super) fn is_streaming(&self) -> bool {
        self.streams.taken() > 0
    }

    /// Counts a chunk that is to be read ahead, until [`Fills::end_ahead`]; false when enough are.
    #[must_use]
    pub(super) fn begin_ahead(&self) -> bool {
        let ahead = self.ahead.get();
        if ahead < AHEAD_MOST {
            self.ahead.set(ahead + 1);
        }
        ahead < AHEAD_MOST
    }

    /// A chunk was read ahead, or was not available.
    pub(super) fn end_ahead(&self) {
        self.ahead.set(self.ahead.get() - 1);
    }

    /// How many chunks are being read ahead, or wait for it.
    pub fn ahead(&self) -> usize {
        self.ahead.get()
    }

    /// A sequence may continue after a host's access: wakes the prefetcher.
    pub fn wake_prefetcher(&self) {
        self.prefetcher.notify();
    }

    /// Waits for the next wake-up, from this call on.
    pub(super) fn until_prefetcher_woken(&self) -> impl Future<Output = ()> + use<> {
        self.prefetcher.wait()
    }
}

#[cfg(test)]
mod tests {
    use crate::shard::probe::{Probe, run};

    #[test]
    fn chunks_that_are_read_ahead_are_bounded() {
        run(|handle| async move {
            let probe = Probe::open(&handle, "ahead").await;
            let fills = &probe.shard.fills;
            let begun = (0..2000).filter(|_| fills.begin_ahead()).count();
            assert_eq!([begun, fills.ahead()], [super::AHEAD_MOST; 2]);
            fills.end_ahead();
            assert!(fills.begin_ahead() && !fills.begin_ahead());
        });
    }
}
