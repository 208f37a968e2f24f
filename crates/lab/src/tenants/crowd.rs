//! All tenants of a run, on their threads.

use super::driver::Driver;
use super::meter::{WINDOW_NS, Window};
use super::session::Session;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Polling interval of waits for the end.
const LOOK: Duration = Duration::from_millis(20);
/// Interval between reports of progress.
const TELL: Duration = Duration::from_millis(500);

/// A tenant.
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The thread that drives it, by a number of one's own; tenants with the same number share one.
    pub thread: usize,
    /// Its sessions.
    pub sessions: Vec<Session>,
}

/// Service attained by a tenant.
#[derive(Clone, Debug, Default)]
pub struct Attained {
    /// Its name.
    pub name: String,
    /// Window after window.
    pub windows: Vec<Window>,
    /// Latencies of all requests.
    pub latencies: Histogram,
}

impl Attained {
    /// Requests answered.
    pub fn answered(&self) -> u64 {
        self.windows.iter().map(|window| window.answered).sum()
    }

    /// Requests answered a second.
    pub fn iops(&self) -> f64 {
        self.answered() as f64 / self.seconds()
    }

    /// Bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        let bytes: u64 = self.windows.iter().map(|window| window.bytes).sum();
        bytes as f64 / self.seconds()
    }

    /// How long it was examined, in seconds.
    pub fn seconds(&self) -> f64 {
        (self.windows.len().max(1) as u64 * WINDOW_NS) as f64 / 1e9
    }

    /// A latency percentile in nanoseconds.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let longest = self.windows.iter().map(|window| window.max_ns).max();
        self.latencies
            .percentile(percent)
            .min(longest.unwrap_or_default())
    }
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Tenants in the order in which they were given.
    pub tenants: Vec<Attained>,
    /// It was interrupted.
    pub interrupted: bool,
}

impl Outcome {
    /// Service attained by a tenant of a name; `None` if it does not exist.
    pub fn of(&self, name: &str) -> Attained {
        let found = self.tenants.iter().find(|tenant| tenant.name == name);
        found.cloned().unwrap_or_default()
    }
}

/// State that threads share.
pub struct Shared {
    begun: Instant,
    end_ns: AtomicU64,
    windows: Vec<Mutex<Vec<Window>>>,
    /// Requests answered so far, by tenant.
    answered: Vec<AtomicU64>,
    failure: Mutex<Option<String>>,
}

impl Shared {
    /// Nanoseconds since the beginning.
    pub fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// The end of sending, in nanoseconds after the start.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }

    fn windows(&self, tenant: usize) -> std::sync::MutexGuard<'_, Vec<Window>> {
        // What was pushed before a panic is as good as what was not.
        let windows = self.windows[tenant].lock();
        windows.unwrap_or_else(PoisonError::into_inner)
    }

    /// A window of a tenant has ended.
    pub fn push(&self, tenant: usize, window: Window) {
        self.windows(tenant).push(window);
    }

    /// Requests of a tenant were answered.
    pub fn answered(&self, tenant: usize, count: usize) {
        self.answered[tenant].fetch_add(count as u64, Ordering::Relaxed);
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Latencies = Vec<(usize, Histogram)>;

/// Tenants that are at work.
pub struct Crowd {
    shared: Arc<Shared>,
    names: Vec<String>,
    threads: Vec<JoinHandle<Latencies>>,
}

impl Crowd {
    /// Lets all tenants begin at the same moment, for so long at most.
    ///
    /// # Errors
    /// When the system refuses something.
    pub fn start(tenants: Vec<Tenant>, time: Duration) -> Result<Self> {
        let names: Vec<String> = tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            end_ns: AtomicU64::new(time.as_nanos() as u64),
            windows: names.iter().map(|_| Mutex::default()).collect(),
            answered: names.iter().map(|_| AtomicU64::new(0)).collect(),
            failure: Mutex::default(),
        });
        let mut groups: std::collections::BTreeMap<usize, Vec<(usize, Vec<Session>)>> =
            std::collections::BTreeMap::new();
        for (number, tenant) in tenants.into_iter().enumerate() {
            let group = groups.entry(tenant.thread).or_default();
            group.push((number, tenant.sessions));
        }
        let mut drivers = Vec::new();
        for (_, tenants) in groups {
            drivers.push(Driver::new(tenants, Arc::clone(&shared))?);
        }
        let threads = drivers.into_iter().map(|driver| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || match driver.run() {
                Ok(latencies) => latencies,
                Err(error) => {
                    shared.failure().get_or_insert(error.to_string());
                    Vec::new()
                }
            })
        });
        Ok(Self {
            threads: threads.collect(),
            names,
            shared,
        })
    }

    /// How long they have been at work.
    pub fn elapsed(&self) -> Duration {
        self.shared.begun.elapsed()
    }

    /// Requests of a tenant that have been answered.
    pub fn answered(&self, tenant: usize) -> u64 {
        self.shared.answered[tenant].load(Ordering::Relaxed)
    }

    /// Up to a number of a tenant's last windows.
    pub fn last(&self, tenant: usize, windows: usize) -> Vec<Window> {
        let all = self.shared.windows(tenant);
        all[all.len().saturating_sub(windows)..].to_vec()
    }

    /// No more is sent from now on.
    pub fn stop(&self) {
        let now = self.shared.now_ns();
        self.shared.end_ns.fetch_min(now, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        match self.shared.failure().take() {
            Some(why) => Err(Failure::new(format!("the load broke off: {why}"))),
            None => Ok(()),
        }
    }

    /// Waits until all have ended; `tell` is called every half a second. An interrupt returns the results so far.
    ///
    /// # Errors
    /// When a request failed, or is not answered.
    pub fn finish(mut self, mut tell: impl FnMut(&Self) -> Result<()>) -> Result<Outcome> {
        let mut told = Instant::now();
        let mut interrupted = false;
        while !self.threads.iter().all(JoinHandle::is_finished) {
            self.check()?;
            if interrupt::asked() && !std::mem::replace(&mut interrupted, true) {
                self.stop();
            }
            if told.elapsed() >= TELL && !interrupted {
                told = Instant::now();
                tell(&self)?;
            }
            std::thread::sleep(LOOK);
        }
        let mut latencies = vec![Histogram::default(); self.names.len()];
        for thread in self.threads.drain(..) {
            let died = |_| Failure::new("a thread of the load panicked");
            for (tenant, histogram) in thread.join().map_err(died)? {
                latencies[tenant] = histogram;
            }
        }
        self.check()?;
        let tenants = self.names.iter().zip(latencies).enumerate();
        let tenants = tenants.map(|(number, (name, latencies))| Attained {
            name: name.clone(),
            windows: self.shared.windows(number).clone(),
            latencies,
        });
        Ok(Outcome {
            tenants: tenants.collect(),
            interrupted,
        })
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            // What it has counted is not used any longer.
            let _ = thread.join();
        }
    }
}
