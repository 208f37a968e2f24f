//! Disks, threads, and the clock.

use super::disk::Opening;
use super::lane::{Counted, Lane, Place};
use super::pace::Pace;
use super::plan::Load;
use super::second::{SECOND_NS, Series};
use super::shared::{Shared, locked};
use super::verify::Verify;
use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::{interrupt, machine};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long what is outstanding at the end is waited for, and any answer before.
const DRAIN_TIME: Duration = Duration::from_secs(60);

/// Whose processor time is examined.
#[derive(Clone, Copy, Default, Debug)]
pub struct Watched {
    /// The server, where it is known.
    pub server: Option<u32>,
}

/// Result of a load.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Reads of each second that counts.
    pub reads: Series,
    /// Writes of each.
    pub writes: Series,
    /// Seconds between the two readings of processor times.
    pub looked: f64,
    /// Seconds of processor time that this program took between them.
    pub own: f64,
    /// The same of the server.
    pub server: Option<f64>,
    /// The same of everything on this machine.
    pub all: f64,
}

/// A load that runs.
struct Running {
    shared: Arc<Shared>,
    counted: Vec<Arc<Mutex<Counted>>>,
    threads: Vec<JoinHandle<()>>,
}

/// Processor times at a moment, in seconds.
struct Times {
    at: Instant,
    own: f64,
    server: Option<f64>,
    all: f64,
}

impl Times {
    fn now(watched: Watched) -> Result<Self> {
        Ok(Self {
            at: Instant::now(),
            own: machine::own_processor_seconds(),
            server: watched.server.map(machine::processor_seconds).transpose()?,
            all: machine::busy_seconds()?,
        })
    }
}

/// Opens the disks; the ports of two of them take turns.
fn places(load: &Load) -> Result<Vec<Place>> {
    let largest = load.blocks.largest();
    let with = Opening {
        queues: load.queues,
        slots: load.depth,
        slot_bytes: largest,
        polling: load.polling,
        writes: load.read_percent < 100,
        looks: load.content.versions().is_some(),
    };
    let mut disks = Vec::new();
    for disk in &load.disks {
        disks.push(disk.open(&with)?.0.into_iter());
    }
    let mut places = Vec::new();
    for _ in 0..load.queues {
        for port in disks.iter_mut().filter_map(Iterator::next) {
            let verify = load.content.versions();
            let verify = verify.map(|versions| Verify::new(versions, load.depth, largest));
            places.push(Place::new(port, load.depth, verify));
        }
    }
    Ok(places)
}

impl Running {
    fn start(load: &Load, places: Vec<Place>) -> Result<Self> {
        let mut places = places.into_iter();
        let threads = usize::from(load.threads).min(places.len());
        let each = places.len().div_ceil(threads);
        let seconds = (load.warm_up + load.seconds) as usize;
        let mut chance = Chance::new(load.seed);
        let end_ns = seconds as u64 * SECOND_NS;
        let mut running = Self {
            shared: Arc::new(Shared::new(load.requests, end_ns)),
            counted: Vec::new(),
            threads: Vec::new(),
        };
        for number in 0..threads {
            // What is answered after the end has a second of its own.
            let counted = Arc::new(Mutex::new(Counted::with_room(seconds + 1)));
            running.counted.push(Arc::clone(&counted));
            let pace = load.rate.map(|rate| Pace::new(rate, number, threads));
            let lane = Lane::new(
                load.clone(),
                places.by_ref().take(each).collect(),
                Arc::clone(&running.shared),
                counted,
                Chance::new(chance.next()),
                pace,
            );
            let cores = &load.cores;
            let core = (!cores.is_empty()).then(|| cores[number % cores.len()]);
            let bound = move || core.map_or(Ok(()), machine::bind_to_core);
            let shared = Arc::clone(&running.shared);
            running
                .threads
                .push(std::thread::spawn(move || match bound() {
                    Ok(()) => lane.run(),
                    Err(error) => {
                        locked(&shared.failure).get_or_insert(format!("cannot be bound: {error}"));
                    }
                }));
        }
        Ok(running)
    }

    fn check(&self) -> Result<()> {
        if let Some(why) = locked(&self.shared.failure).take() {
            return Err(Failure::new(format!("the load broke off: {why}")));
        }
        let last = Duration::from_nanos(self.shared.last_ns.load(Ordering::Relaxed));
        if Duration::from_nanos(self.shared.now_ns()).saturating_sub(last) > DRAIN_TIME {
            return Err(Failure::new(format!(
                "nothing was answered for {} s: look at the server's log",
                DRAIN_TIME.as_secs()
            )));
        }
        interrupt::check()
    }

    fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Requests of a second, over all lanes.
    fn count(&self, second: usize) -> u64 {
        let counts = self.counted.iter().map(|counted| {
            let counted = locked(counted);
            counted.reads.count(second) + counted.writes.count(second)
        });
        counts.sum()
    }

    /// Waits until a second has ended, or everything has.
    fn wait_until(&self, end_ns: u64) -> Result<()> {
        while self.shared.now_ns() < end_ns && !self.has_ended() {
            self.check()?;
            let left = Duration::from_nanos(end_ns.saturating_sub(self.shared.now_ns()));
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        self.check()
    }

    /// Continues the load, and calls `meanwhile` after each measured second; returns the number of those seconds, and
    /// the processor times.
    fn go_on(
        &self,
        load: &Load,
        watched: Watched,
        meanwhile: &mut impl FnMut(u64, f64) -> Result<bool>,
    ) -> Result<(u64, Times, Times)> {
        self.wait_until(load.warm_up * SECOND_NS)?;
        let before = Times::now(watched)?;
        let mut seconds = 0;
        while seconds < load.seconds && !self.has_ended() {
            let second = load.warm_up + seconds;
            self.wait_until((second + 1) * SECOND_NS)?;
            seconds += 1;
            if !meanwhile(seconds - 1, self.count(second as usize) as f64)? {
                break;
            }
        }
        Ok((seconds, before, Times::now(watched)?))
    }

    /// Waits for what is on its way: it would burden whatever is measured next.
    fn drain(&self) -> Result<()> {
        let now = self.shared.now_ns();
        self.shared.stopped_ns.fetch_min(now, Ordering::Relaxed);
        self.shared.stop.store(true, Ordering::Relaxed);
        let drained = interrupt::wait_for(DRAIN_TIME, || Ok(self.has_ended()))?;
        self.check()?;
        match drained {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "requests have not completed after {} s: see the server's log",
                DRAIN_TIME.as_secs()
            ))),
        }
    }

    /// The seconds that count.
    fn counted(&self, left_out: u64, seconds: u64) -> Counted {
        let mut all = Counted::default();
        for counted in &self.counted {
            let counted = locked(counted);
            all.reads.merge(&counted.reads);
            all.writes.merge(&counted.writes);
        }
        let last_ns = self.shared.last_ns.load(Ordering::Relaxed);
        let end_ns = (left_out + seconds) * SECOND_NS;
        if last_ns < end_ns {
            all.reads.silent(last_ns, end_ns);
        }
        for series in [&mut all.reads, &mut all.writes] {
            series.cut(left_out as usize, seconds as usize);
        }
        all
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.abandon.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A lane that panicked has said so; what it counted is not used any longer.
            let _ = thread.join();
        }
    }
}

/// Runs a load. After each measured second `meanwhile` is called with its number and the requests completed
/// in it, and says whether to continue.
///
/// # Errors
/// When a disk cannot be opened, a request fails, nothing is answered, or something wrong is read.
pub fn measure(
    load: &Load,
    watched: Watched,
    meanwhile: impl FnMut(u64, f64) -> Result<bool>,
) -> Result<Outcome> {
    measure_on(load, places(load)?, watched, meanwhile)
}

/// The same on ports that are there.
pub(super) fn measure_on(
    load: &Load,
    places: Vec<Place>,
    watched: Watched,
    mut meanwhile: impl FnMut(u64, f64) -> Result<bool>,
) -> Result<Outcome> {
    let running = Running::start(load, places)?;
    let (seconds, before, after) = running.go_on(load, watched, &mut meanwhile)?;
    running.drain()?;
    let counted = running.counted(load.warm_up, seconds);
    Ok(Outcome {
        reads: counted.reads,
        writes: counted.writes,
        looked: (after.at - before.at).as_secs_f64(),
        own: after.own - before.own,
        server: after
            .server
            .zip(before.server)
            .map(|(after, before)| after - before),
        all: after.all - before.all,
    })
}

/// Runs a load that either reads or writes, and gives its seconds.
///
/// # Errors
/// As [`measure`].
pub fn run(load: &Load, meanwhile: impl FnMut(u64, f64) -> Result<bool>) -> Result<Series> {
    let mut outcome = measure(load, Watched::default(), meanwhile)?;
    outcome.reads.merge(&outcome.writes);
    Ok(outcome.reads)
}
