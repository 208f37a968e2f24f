//! Random reads and writes at a fixed depth, as fast as the disk answers.

use super::{ClientQueue, Command, Done};
use std::io;
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(30);
/// Buckets of the latency histogram: 16 for each power of two of nanoseconds.
const BUCKETS: usize = 64 * 16;

/// What a load does.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests in flight.
    pub depth: usize,
    /// Bytes of each request, a multiple of 512.
    pub block: usize,
    /// First sector of the range.
    pub first_sector: u64,
    /// Blocks of the range.
    pub blocks: u64,
    /// Reads in a hundred requests; the others are writes.
    pub read_percent: u64,
    /// How long.
    pub duration: Duration,
    /// Beginning of the random sequence.
    pub seed: u64,
    /// Looks for answers all the time instead of sleeping until the disk notifies.
    pub busy: bool,
}

/// What a load measured.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Kicks that the disk wanted.
    pub kicks: u64,
    histogram: Vec<u64>,
}

fn bucket(ns: u64) -> usize {
    let exponent = 63 - (ns | 16).leading_zeros() as usize;
    exponent * 16 + ((ns >> (exponent - 4)) & 15) as usize
}

impl LoadResult {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency in nanoseconds that `percent` of the requests kept, to about 6 %.
    pub fn latency_ns(&self, percent: f64) -> u64 {
        let wanted = (self.requests as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.histogram.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                let (exponent, part) = (index / 16, index as u64 % 16);
                return (16 + part) << (exponent - 4);
            }
        }
        0
    }
}

impl ClientQueue {
    /// Runs a load on this ring, whose slots must all be free.
    ///
    /// # Errors
    /// When the disk does not answer for half a minute.
    ///
    /// # Panics
    /// When the load is deeper than the ring has slots, or its blocks larger than a slot's data.
    pub fn run(&mut self, load: &Load) -> io::Result<LoadResult> {
        assert!(load.block <= self.slot_bytes(), "blocks larger than a slot");
        let mut slots = Vec::with_capacity(load.depth);
        for _ in 0..load.depth {
            slots.push(self.take_slot().expect("a load deeper than the ring"));
        }
        let mut started = vec![Instant::now(); usize::from(self.size())];
        let mut random = load.seed | 1;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let mut begin = |queue: &mut Self, slot: u16| {
            let sector = load.first_sector + next() % load.blocks * (load.block as u64 / 512);
            let len = load.block;
            let command = if next() % 100 < load.read_percent {
                Command::Read { sector, len }
            } else {
                Command::Write { sector, len }
            };
            queue.push(slot, command);
        };
        let mut result = LoadResult {
            requests: 0,
            errors: 0,
            elapsed: Duration::ZERO,
            kicks: 0,
            histogram: vec![0; BUCKETS],
        };
        self.set_polling(load.busy);
        let begun = Instant::now();
        let mut in_flight = slots.len();
        for slot in slots {
            started[usize::from(slot)] = Instant::now();
            begin(self, slot);
        }
        result.kicks += u64::from(self.kick());
        while in_flight > 0 {
            let mut done = Some(self.next_answer(load.busy)?);
            let now = Instant::now();
            let ending = now - begun >= load.duration;
            while let Some(answer) = done {
                let slot = usize::from(answer.slot);
                let latency = now.saturating_duration_since(started[slot]);
                result.histogram[bucket(latency.as_nanos() as u64)] += 1;
                result.requests += 1;
                result.errors += u64::from(answer.status != 0);
                if ending {
                    in_flight -= 1;
                } else {
                    let slot = self.take_slot().expect("the slot that has just ended");
                    started[usize::from(slot)] = now;
                    begin(self, slot);
                }
                done = self.poll();
            }
            result.kicks += u64::from(self.kick());
        }
        result.elapsed = begun.elapsed();
        Ok(result)
    }

    fn next_answer(&mut self, busy: bool) -> io::Result<Done> {
        if !busy {
            return self.wait(WAIT);
        }
        let deadline = Instant::now() + WAIT;
        loop {
            for _ in 0..1000 {
                if let Some(done) = self.poll() {
                    return Ok(done);
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
            if Instant::now() > deadline {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the disk does not answer",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_told_to_a_sixteenth() {
        for ns in [17, 100, 1_000, 123_456, 98_765_432] {
            let mut histogram = vec![0; BUCKETS];
            histogram[bucket(ns)] = 1;
            let result = LoadResult {
                requests: 1,
                errors: 0,
                elapsed: Duration::from_secs(1),
                kicks: 0,
                histogram,
            };
            let told = result.latency_ns(99.0);
            assert!(told <= ns && ns - told <= ns / 16, "{ns} became {told}");
        }
    }
}
