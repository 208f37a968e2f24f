//! Connections, threads, and the clock.

use super::lane::{Group, Lane, Shared, locked};
use super::second::{SECOND_NS, Series};
use crate::chance::Chance;
use crate::failure::{Failure, Result, While};
use crate::fio::{DEPTH, Target};
use crate::interrupt;
use crate::nbd::connect;
use std::io::BufReader;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use units::BLOCK;

/// Connections to each export.
const CONNECTIONS: usize = 2;
/// How long what is outstanding at the end is waited for.
const DRAIN_TIME: Duration = Duration::from_secs(60);

/// Where the next request goes: its offset in bytes.
pub type Aim = Arc<dyn Fn(&mut Chance) -> u64 + Send + Sync>;

/// A load of 4 KiB requests, as many outstanding as in every measurement here.
pub struct Load {
    /// One export, or two that share the requests.
    pub targets: Vec<Target>,
    /// The part of the requests that goes to the first of two, from 0 to 1.
    pub first: f64,
    /// Whether they write.
    pub writes: bool,
    /// Where they go.
    pub aim: Aim,
    /// For how long, at most.
    pub seconds: u64,
}

impl Load {
    /// Requests all over a part of one export.
    pub fn all_over(target: Target, writes: bool, bytes: Range<u64>, seconds: u64) -> Self {
        let blocks = (bytes.end - bytes.start) / BLOCK as u64;
        Self {
            targets: vec![target],
            first: 1.0,
            writes,
            aim: Arc::new(move |chance| bytes.start + chance.below(blocks) * BLOCK as u64),
            seconds,
        }
    }
}

/// A load that runs.
struct Running {
    shared: Arc<Shared>,
    groups: Vec<Arc<Group>>,
    series: Vec<Arc<Mutex<Series>>>,
    threads: Vec<JoinHandle<()>>,
}

fn open(target: &Target) -> Result<BufReader<UnixStream>> {
    let Target::Nbd { export, socket } = target else {
        return Err(Failure::new(
            "this load goes to what is exported by NBD alone",
        ));
    };
    let doing = || format!("cannot connect to {}", socket.display());
    Ok(connect(socket, export).during(doing)?.0)
}

impl Running {
    fn start(load: &Load) -> Result<Self> {
        let depth = DEPTH as usize / CONNECTIONS;
        let mut chance = Chance::new(load.seconds);
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let streams: Result<Vec<_>> = load.targets.iter().map(open).collect();
            connections.push(streams?);
        }
        let mut running = Self {
            shared: Arc::new(Shared::new(depth * CONNECTIONS)),
            groups: Vec::new(),
            series: Vec::new(),
            threads: Vec::new(),
        };
        for streams in connections {
            let halves = streams.iter().map(|stream| stream.get_ref().try_clone());
            let halves: std::io::Result<Vec<_>> = halves.collect();
            let group = Arc::new(Group {
                streams: halves?.into_iter().map(Mutex::new).collect(),
                first: load.first,
                aim: Arc::clone(&load.aim),
                writes: load.writes,
                data: (0..BLOCK).map(|_| chance.next() as u8).collect(),
            });
            running.groups.push(Arc::clone(&group));
            for stream in streams {
                let series: Arc<Mutex<Series>> = Arc::default();
                running.series.push(Arc::clone(&series));
                let lane = Lane {
                    stream,
                    group: Arc::clone(&group),
                    shared: Arc::clone(&running.shared),
                    series,
                    chance: Chance::new(chance.next()),
                };
                running.threads.push(std::thread::spawn(move || lane.run()));
            }
            group.send(&running.shared, &mut chance, depth)?;
        }
        Ok(running)
    }

    fn check(&self) -> Result<()> {
        match locked(&self.shared.failure).take() {
            Some(why) => Err(Failure::new(format!("the load broke off: {why}"))),
            None => interrupt::check(),
        }
    }

    /// Requests of a second, over all lanes.
    fn count(&self, second: u64) -> u64 {
        let counts = self.series.iter();
        counts
            .map(|series| locked(series).count(second as usize))
            .sum()
    }

    /// Calls `meanwhile` after each second; answers how many seconds it went on.
    fn go_on(
        &self,
        seconds: u64,
        meanwhile: &mut impl FnMut(u64, f64) -> Result<bool>,
    ) -> Result<u64> {
        for second in 0..seconds {
            let end_ns = (second + 1) * SECOND_NS;
            while self.shared.now_ns() < end_ns {
                self.check()?;
                let left = Duration::from_nanos(end_ns.saturating_sub(self.shared.now_ns()));
                std::thread::sleep(left.min(Duration::from_millis(50)));
            }
            if !meanwhile(second, self.count(second) as f64)? {
                return Ok(second + 1);
            }
        }
        Ok(seconds)
    }

    /// Ends it, and gives its whole seconds.
    fn stop(&self, seconds: u64) -> Result<Series> {
        self.shared.stop.store(true, Ordering::SeqCst);
        let mut all = Series::default();
        self.series
            .iter()
            .for_each(|series| all.merge(&locked(series)));
        let last_ns = self.shared.last_ns.load(Ordering::Relaxed);
        let end_ns = seconds * SECOND_NS;
        if last_ns < end_ns {
            all.silent(last_ns, end_ns);
        }
        all.cut(seconds as usize);
        // What is on its way would burden whatever is measured next.
        let drained = interrupt::wait_for(DRAIN_TIME, || {
            self.check()?;
            Ok(self.shared.outstanding.load(Ordering::SeqCst) == 0)
        })?;
        match drained {
            true => Ok(all),
            false => Err(Failure::new(format!(
                "requests are not answered after {} s: look at the daemon's log",
                DRAIN_TIME.as_secs()
            ))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.groups.iter().for_each(|group| group.close());
        for thread in self.threads.drain(..) {
            // A lane that panicked has said so; what it counted is not used any more.
            let _ = thread.join();
        }
    }
}

/// Runs a load. After each second `meanwhile` is told its number and how many requests were answered in
/// it, and says whether to go on.
pub fn run(load: &Load, mut meanwhile: impl FnMut(u64, f64) -> Result<bool>) -> Result<Series> {
    let running = Running::start(load)?;
    let seconds = running.go_on(load.seconds, &mut meanwhile)?;
    running.stop(seconds)
}
