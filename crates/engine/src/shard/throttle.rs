//! How fast a scrub reads: at most its rate, and slower while hosts would feel it.
//!
//! While a scrub runs, every operation's time goes into a histogram. Now and then the scrub pauses
//! and takes the time below which 99 of 100 operations end without it. When more than one in a
//! hundred takes longer while it reads, it halves its rate; when not, it doubles it again.

use reactor::Handle;
use std::cell::{Cell, RefCell};

/// Buckets for each doubling of the time.
const PER_DOUBLING: u32 = 8;
const BUCKETS: usize = 64 * PER_DOUBLING as usize;
/// How long the scrub pauses to see what is usual, in nanoseconds, and how often.
const QUIET_NS: u64 = 1_000_000_000;
const QUIET_EVERY_NS: u64 = 15_000_000_000;
/// Time between looks at what hosts feel, in nanoseconds.
const LOOK_NS: u64 = 250_000_000;
/// Operations that a look or a pause has to have seen to mean anything.
const ENOUGH: u32 = 50;
/// The slowest is this part of the rate, so that the scrub ends.
const SLOWEST: u64 = 64;
/// Most time that is made up for after a wait, in nanoseconds.
const BURST_NS: u64 = 20_000_000;
const SECOND: u64 = 1_000_000_000;

/// Times of operations, while somebody asks.
pub struct Meter {
    on: Cell<bool>,
    counts: RefCell<Box<[u32; BUCKETS]>>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            on: Cell::new(false),
            counts: RefCell::new(Box::new([0; BUCKETS])),
        }
    }
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(PER_DOUBLING.into());
    let doubling = ns.ilog2();
    let within = (ns >> (doubling - PER_DOUBLING.ilog2())) as u32 % PER_DOUBLING;
    (doubling * PER_DOUBLING + within) as usize
}

impl Meter {
    /// Counts an operation.
    pub fn note(&self, took_ns: u64) {
        if self.on.get() {
            self.counts.borrow_mut()[bucket(took_ns)] += 1;
        }
    }

    fn begin(&self) {
        self.on.set(true);
        self.counts.borrow_mut().fill(0);
    }

    fn count(&self) -> u32 {
        self.counts.borrow().iter().sum()
    }

    /// The bucket below or in which 99 of 100 operations lie.
    fn usual(&self) -> Option<usize> {
        let counts = self.counts.borrow();
        let total: u32 = counts.iter().sum();
        let mut seen = 0;
        (total >= ENOUGH).then(|| {
            let over = |(_, count): &(usize, &u32)| {
                seen += **count;
                seen * 100 >= total * 99
            };
            let found = counts.iter().enumerate().find(over);
            found.map_or(BUCKETS - 1, |(bucket, _)| bucket)
        })
    }

    fn above(&self, bucket: usize) -> u32 {
        self.counts.borrow()[bucket + 1..].iter().sum()
    }
}

/// The pace of one shard's part of a scrub.
pub(super) struct Throttle<'a> {
    handle: Handle,
    meter: &'a Meter,
    /// Bytes a second, at most and now.
    most: u64,
    rate: u64,
    next_ns: u64,
    look_ns: u64,
    quiet_ns: u64,
    usual: Option<usize>,
}

impl<'a> Throttle<'a> {
    /// At most `rate` bytes a second.
    pub(super) fn new(handle: &Handle, meter: &'a Meter, rate: u64) -> Self {
        meter.begin();
        let now = handle.now_ns();
        Self {
            handle: handle.clone(),
            meter,
            most: rate.max(1),
            rate: rate.max(1),
            next_ns: now,
            look_ns: now + LOOK_NS,
            quiet_ns: now,
            usual: None,
        }
    }

    /// Waits until `bytes` more may be read.
    pub(super) async fn wait(&mut self, bytes: u64) {
        let now = self.handle.now_ns();
        if now >= self.look_ns {
            self.look().await;
        }
        let now = self.handle.now_ns();
        let start = self.next_ns.max(now.saturating_sub(BURST_NS));
        let takes = u128::from(bytes) * u128::from(SECOND) / u128::from(self.rate);
        self.next_ns = start + takes as u64;
        if start > now {
            self.handle.sleep_until(start).await;
        }
    }

    async fn look(&mut self) {
        if self.meter.count() >= ENOUGH {
            let now = self.handle.now_ns();
            if self.usual.is_none() || now >= self.quiet_ns {
                self.pause().await;
            } else {
                self.adjust();
            }
            self.meter.begin();
        } else if self.handle.now_ns() >= self.look_ns + 4 * LOOK_NS {
            // Hosts ask for little: nobody waits.
            self.usual = None;
            self.rate = self.most;
            self.meter.begin();
        } else {
            return;
        }
        self.look_ns = self.handle.now_ns() + LOOK_NS;
    }

    /// Reads nothing for a moment and takes what is usual.
    async fn pause(&mut self) {
        self.meter.begin();
        self.handle.sleep(QUIET_NS).await;
        self.usual = self.meter.usual();
        self.quiet_ns = self.handle.now_ns() + QUIET_EVERY_NS;
    }

    fn adjust(&mut self) {
        let Some(usual) = self.usual else { return };
        if self.meter.above(usual) * 100 > self.meter.count() {
            self.rate = (self.rate / 2).max(self.most / SLOWEST).max(1);
        } else {
            self.rate = self.rate.saturating_mul(2).min(self.most);
        }
    }
}

impl Drop for Throttle<'_> {
    fn drop(&mut self) {
        self.meter.on.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_with_the_time() {
        let mut last = 0;
        for ns in [0, 1, 100, 1000, 1200, 5000, 1_000_000, u64::MAX] {
            assert!(bucket(ns) >= last && bucket(ns) < BUCKETS, "{ns}");
            last = bucket(ns);
        }
        assert!(bucket(1_250_000) > bucket(1_000_000));
        assert_eq!(bucket(1_050_000), bucket(1_100_000));
    }

    #[test]
    fn what_is_usual_is_what_99_of_100_take() {
        let meter = Meter::default();
        meter.note(1);
        assert_eq!(meter.count(), 0, "nobody asked");
        meter.begin();
        (0..990).for_each(|_| meter.note(1000));
        (0..10).for_each(|_| meter.note(1_000_000));
        assert_eq!(meter.usual(), Some(bucket(1000)));
        assert_eq!(meter.above(bucket(1000)), 10);
    }
}
