//! The rate at which a scrub reads and deleted space is freed: limited, and lower while hosts
//! would feel it.
//!
//! While such work runs, every operation's time goes into a histogram. Now and then the work pauses
//! and takes the p99 latency without it. When more than one in a
//! hundred takes longer beside it, it halves its rate; when not, it doubles it again. While a volume misses its guarantee,
//! it has the least rate.

use super::Upkeep;
use std::cell::RefCell;
use std::rc::Rc;

/// Buckets for each doubling of the time.
const PER_DOUBLING: u32 = 8;
const BUCKETS: usize = 64 * PER_DOUBLING as usize;
/// Duration and interval of the scrub's pauses for measuring the usual latency, in nanoseconds.
const QUIET_NS: u64 = 1_000_000_000;
const QUIET_EVERY_NS: u64 = 15_000_000_000;
/// Interval of checking hosts' latency, in nanoseconds.
const LOOK_NS: u64 = 250_000_000;
/// Minimum number of operations for a valid measurement.
const ENOUGH: u32 = 50;
/// The slowest scrub runs at this fraction of the rate, so that it completes.
const SLOWEST: u64 = 64;
/// Chunks per second and shard whose space is freed: while hosts are nearly idle, at the
/// start, and at least.
const RECLAIM: Rates = Rates {
    most: 65_536,
    first: 1024,
    least: 256,
};
/// Most time that is made up for after a wait, in nanoseconds.
const BURST_NS: u64 = 20_000_000;
const SECOND: u64 = 1_000_000_000;

/// Subscribers of the latencies of a shard's operations: usually none.
#[derive(Default)]
pub(crate) struct Meters(RefCell<Vec<Rc<Meter>>>);

impl Meters {
    /// Counts `count` operations of the same latency.
    pub fn note(&self, took_ns: u64, count: usize) {
        for meter in self.0.borrow().iter() {
            meter.note(took_ns, count);
        }
    }

    fn add(&self) -> Rc<Meter> {
        let meter = Rc::new(Meter::default());
        self.0.borrow_mut().push(meter.clone());
        meter
    }

    fn remove(&self, meter: &Rc<Meter>) {
        self.0
            .borrow_mut()
            .retain(|known| !Rc::ptr_eq(known, meter));
    }
}

/// Times of operations.
struct Meter(RefCell<Box<[u32; BUCKETS]>>);

impl Default for Meter {
    fn default() -> Self {
        Self(RefCell::new(Box::new([0; BUCKETS])))
    }
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(PER_DOUBLING.into());
    let doubling = ns.ilog2();
    let within = (ns >> (doubling - PER_DOUBLING.ilog2())) as u32 % PER_DOUBLING;
    (doubling * PER_DOUBLING + within) as usize
}

impl Meter {
    fn note(&self, took_ns: u64, count: usize) {
        self.0.borrow_mut()[bucket(took_ns)] += count as u32;
    }

    fn begin(&self) {
        self.0.borrow_mut().fill(0);
    }

    fn count(&self) -> u32 {
        self.0.borrow().iter().sum()
    }

    /// The bucket of the p99 latency.
    fn usual(&self) -> Option<usize> {
        let counts = self.0.borrow();
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
        self.0.borrow()[bucket + 1..].iter().sum()
    }
}

/// Rates in units per second.
struct Rates {
    most: u64,
    first: u64,
    least: u64,
}

/// The pace of work in one shard.
pub struct Throttle<'a> {
    upkeep: &'a Upkeep,
    meter: Rc<Meter>,
    rates: Rates,
    /// The present rate in units per second.
    rate: u64,
    next_ns: u64,
    look_ns: u64,
    quiet_ns: u64,
    usual: Option<usize>,
}

impl<'a> Throttle<'a> {
    /// For a scrub: at most `rate` bytes per second.
    pub fn scrub(upkeep: &'a Upkeep, rate: u64) -> Self {
        let rates = Rates {
            most: rate.max(1),
            first: rate.max(1),
            least: (rate / SLOWEST).max(1),
        };
        Self::new(upkeep, rates)
    }

    /// For freeing chunks.
    pub fn reclaim(upkeep: &'a Upkeep) -> Self {
        Self::new(upkeep, RECLAIM)
    }

    fn new(upkeep: &'a Upkeep, rates: Rates) -> Self {
        let now = upkeep.handle.now_ns();
        Self {
            upkeep,
            meter: upkeep.meters.add(),
            rate: rates.first,
            rates,
            next_ns: now,
            look_ns: now + LOOK_NS,
            quiet_ns: now,
            usual: None,
        }
    }

    /// Waits until a number of further units may be done.
    pub async fn wait(&mut self, units: u64) {
        let now = self.upkeep.handle.now_ns();
        if now >= self.look_ns {
            self.look().await;
        }
        let now = self.upkeep.handle.now_ns();
        let start = self.next_ns.max(now.saturating_sub(BURST_NS));
        let rate = match self.upkeep.is_hurt() {
            true => self.rates.least,
            false => self.rate,
        };
        let takes = u128::from(units) * u128::from(SECOND) / u128::from(rate);
        self.next_ns = start + takes as u64;
        if start > now {
            self.upkeep.handle.sleep_until(start).await;
        }
    }

    async fn look(&mut self) {
        if self.meter.count() >= ENOUGH {
            let now = self.upkeep.handle.now_ns();
            if self.usual.is_none() || now >= self.quiet_ns {
                self.pause().await;
            } else {
                self.adjust();
            }
            self.meter.begin();
        } else if self.upkeep.handle.now_ns() >= self.look_ns + 4 * LOOK_NS {
            // Hosts are nearly idle: no host waits.
            self.usual = None;
            self.rate = self.rates.most;
            self.meter.begin();
        } else {
            return;
        }
        self.look_ns = self.upkeep.handle.now_ns() + LOOK_NS;
    }

    /// Pauses for a moment and measures the usual latency.
    async fn pause(&mut self) {
        self.meter.begin();
        self.upkeep.handle.sleep(QUIET_NS).await;
        self.usual = self.meter.usual();
        self.quiet_ns = self.upkeep.handle.now_ns() + QUIET_EVERY_NS;
    }

    fn adjust(&mut self) {
        let Some(usual) = self.usual else { return };
        if self.meter.above(usual) * 100 > self.meter.count() {
            self.rate = (self.rate / 2).max(self.rates.least);
        } else {
            self.rate = self.rate.saturating_mul(2).min(self.rates.most);
        }
    }
}

impl Drop for Throttle<'_> {
    fn drop(&mut self) {
        self.upkeep.meters.remove(&self.meter);
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
        let meters = Meters::default();
        meters.note(1, 1);
        let meter = meters.add();
        assert_eq!(meter.count(), 0, "nobody asked");
        meters.note(1000, 990);
        (0..10).for_each(|_| meters.note(1_000_000, 1));
        assert_eq!(meter.usual(), Some(bucket(1000)));
        assert_eq!(meter.above(bucket(1000)), 10);
        meters.remove(&meter);
        meters.note(1, 1);
        assert_eq!(meter.count(), 1000);
    }
}
