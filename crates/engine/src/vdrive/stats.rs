//! Bytes read from and written to a drive, counted per thread: a cache line that all
//! threads write would go from core to core with every request.

use super::Purpose;
use crate::control::spread::{IoSpread, SIZE_BOUNDS, SIZES, Spread, TIME_BOUNDS, TIMES};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sums of all threads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sums {
    /// Reads ended.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes ended.
    pub writes: u64,
    /// Bytes written, by purpose.
    written: [u64; 4],
}

impl Sums {
    /// Bytes written for something.
    pub fn written_for(&self, purpose: Purpose) -> u64 {
        self.written[purpose as usize]
    }

    /// Bytes written in all.
    pub fn written(&self) -> u64 {
        self.written.iter().sum()
    }

    fn add(&mut self, counts: &Counts) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.reads += of(&counts.reads);
        self.read_bytes += of(&counts.read_bytes);
        self.writes += of(&counts.writes);
        for (sum, counter) in self.written.iter_mut().zip(&counts.written) {
            *sum += of(counter);
        }
    }
}

/// Latencies and sizes of requests of all threads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Times {
    /// Nanoseconds of reads, summed.
    pub read_ns: u64,
    /// Same for writes.
    pub write_ns: u64,
    /// Requests by times and sizes.
    pub spread: IoSpread,
}

impl Times {
    fn add(&mut self, counts: &Counts) {
        counts.timed[0].add_to(&mut self.read_ns, &mut self.spread.reads);
        counts.timed[1].add_to(&mut self.write_ns, &mut self.spread.writes);
    }
}

/// Requests of one kind by times and sizes, as in [`Spread`].
#[derive(Default, Debug)]
struct Timed {
    ns: AtomicU64,
    times: [AtomicU64; TIMES],
    sizes: [AtomicU64; SIZES],
}

impl Timed {
    fn note(&self, bytes: u64, took_ns: u64) {
        add(&self.ns, took_ns);
        add(&self.times[TIME_BOUNDS.bucket(took_ns)], 1);
        add(&self.sizes[SIZE_BOUNDS.bucket(bytes)], 1);
    }

    fn add_to(&self, ns: &mut u64, spread: &mut Spread) {
        let own = self.times.iter().chain(&self.sizes);
        let sums = spread.times.iter_mut().chain(&mut spread.sizes);
        for (sum, counter) in sums.zip(own).chain([(ns, &self.ns)]) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }
}

/// One thread's counters, on lines of their own.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Counts {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written: [AtomicU64; 4],
    /// Reads and writes.
    timed: [Timed; 2],
}

/// Only one thread changes a counter, so it needs no locked addition.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The counters of one drive.
#[derive(Default, Debug)]
pub struct Tally(Arc<Mutex<Threads>>);

#[derive(Default, Debug)]
struct Threads {
    /// Counts of ended threads.
    gone: (Sums, Times),
    counts: Vec<Arc<Counts>>,
}

fn lock(threads: &Mutex<Threads>) -> MutexGuard<'_, Threads> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    /// Totals of all threads.
    pub fn sums(&self) -> Sums {
        let threads = lock(&self.0);
        let mut sums = threads.gone.0;
        threads.counts.iter().for_each(|counts| sums.add(counts));
        sums
    }

    /// Total bytes that all threads have written.
    pub fn written(&self) -> u64 {
        let threads = lock(&self.0);
        let all = threads.counts.iter().flat_map(|counts| &counts.written);
        let of_all = all.map(|counter| counter.load(Ordering::Relaxed));
        threads.gone.0.written() + of_all.sum::<u64>()
    }

    /// Latencies of all threads' requests.
    pub fn times(&self) -> Times {
        let threads = lock(&self.0);
        let mut times = threads.gone.1;
        threads.counts.iter().for_each(|counts| times.add(counts));
        times
    }

    /// Counters for the calling thread.
    pub(super) fn join(&self) -> Counter {
        let counts = Arc::<Counts>::default();
        lock(&self.0).counts.push(counts.clone());
        Counter {
            counts,
            threads: self.0.clone(),
            _of_one_thread: std::marker::PhantomData,
        }
    }
}

/// One thread's counters of a drive. What they counted stays in its sums.
pub(super) struct Counter {
    counts: Arc<Counts>,
    threads: Arc<Mutex<Threads>>,
    _of_one_thread: std::marker::PhantomData<*const ()>,
}

impl Counter {
    /// A read of a number of bytes has ended, with its latency in nanoseconds.
    pub fn read(&self, bytes: u64, took_ns: u64) {
        self.counts.timed[0].note(bytes, took_ns);
        add(&self.counts.reads, 1);
        add(&self.counts.read_bytes, bytes);
    }

    /// A write of a number of bytes has ended, with its latency in nanoseconds.
    pub fn wrote(&self, purpose: Purpose, bytes: u64, took_ns: u64) {
        self.counts.timed[1].note(bytes, took_ns);
        add(&self.counts.writes, 1);
        add(&self.counts.written[purpose as usize], bytes);
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let mut threads = lock(&self.threads);
        threads.gone.0.add(&self.counts);
        threads.gone.1.add(&self.counts);
        let is_own = |counts: &Arc<Counts>| Arc::ptr_eq(counts, &self.counts);
        threads.counts.retain(|counts| !is_own(counts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_counted_adds_up_and_stays_when_they_are_gone() {
        let tally = Tally::default();
        let own = tally.join();
        own.read(4096, 5000);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let counter = tally.join();
                counter.read(512, 7000);
                counter.wrote(Purpose::Hosts, 8192, 0);
                counter.wrote(Purpose::Metadata, 4096, 1 << 40);
            });
            other.join().expect("it counts");
        });
        own.wrote(Purpose::Hosts, 1, 1000);
        let sums = tally.sums();
        assert_eq!((sums.reads, sums.read_bytes, sums.writes), (2, 4608, 3));
        assert_eq!(sums.written_for(Purpose::Hosts), 8193);
        assert_eq!(sums.written_for(Purpose::Upkeep), 0);
        assert_eq!([sums.written(), tally.written()], [12_289; 2]);
        let times = tally.times();
        assert_eq!((times.read_ns, times.write_ns), (12_000, (1 << 40) + 1000));
        let IoSpread { reads, writes } = times.spread;
        assert_eq!((reads.times[1], reads.sizes[0], reads.sizes[3]), (2, 1, 1));
        assert_eq!((writes.times[0], writes.times[TIMES - 1]), (2, 1));
        assert_eq!(writes.sizes[..5], [1, 0, 0, 1, 1]);
        assert_eq!(lock(&tally.0).counts.len(), 1, "the other is gone");
    }
}
