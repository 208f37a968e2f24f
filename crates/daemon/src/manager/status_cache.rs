//! A cache of the status of all pools, refreshed once a second and shared by readers that tolerate
//! its age.
//!
//! A refresh queries each shard once. A status is valid for 1.2 s; a reader that finds it expired
//! refreshes it, and readers waiting for the next one are woken by the first refresh.

use crate::Control;
use crate::clock::since_1970;
use crate::sync::lock;
use engine::PoolLook;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum age of a shared status, and time limit of waiting for the next one.
const FRESH: Duration = Duration::from_millis(1200);

/// Status of all pools at some time.
pub struct CachedStatus {
    /// Sequence number.
    pub number: u64,
    began: Instant,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Duration of the refresh.
    pub took: Duration,
    /// The pools, by name.
    pub pools: Vec<PoolLook>,
}

/// The newest status, and readers waiting for the next.
pub struct StatusCache {
    control: Arc<dyn Control>,
    newest: Mutex<Arc<CachedStatus>>,
    refreshed: Condvar,
}

impl StatusCache {
    /// An empty cache.
    pub fn new(control: &Arc<dyn Control>) -> Self {
        let nothing = CachedStatus {
            number: 0,
            began: Instant::now(),
            at_ms: 0,
            took: Duration::ZERO,
            pools: Vec::new(),
        };
        Self {
            control: Arc::clone(control),
            newest: Mutex::new(Arc::new(nothing)),
            refreshed: Condvar::new(),
        }
    }

    /// Refreshes the status now, for all waiting readers.
    pub fn refresh(&self) -> Arc<CachedStatus> {
        let (began, at) = (Instant::now(), since_1970());
        let mut pools = self.control.look();
        pools.sort_by(|one, other| one.status.name.cmp(&other.status.name));
        let mut newest = lock(&self.newest);
        *newest = Arc::new(CachedStatus {
            number: newest.number + 1,
            began,
            at_ms: at.as_millis() as u64,
            took: began.elapsed(),
            pools,
        });
        self.refreshed.notify_all();
        Arc::clone(&newest)
    }

    /// The newest status, refreshed if expired.
    pub fn recent(&self) -> Arc<CachedStatus> {
        let newest = Arc::clone(&lock(&self.newest));
        match newest.number == 0 || newest.began.elapsed() > FRESH {
            true => self.refresh(),
            false => newest,
        }
    }

    /// The first status after number `number`, whoever refreshes it; for 0 it is refreshed now.
    pub fn after(&self, number: u64) -> Arc<CachedStatus> {
        if number == 0 {
            return self.refresh();
        }
        let newest = lock(&self.newest);
        let old = |status: &mut Arc<CachedStatus>| {
            status.number <= number || status.began.elapsed() > FRESH
        };
        let waited = self.refreshed.wait_timeout_while(newest, FRESH, old);
        let (newest, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut found = Arc::clone(&newest);
        drop(newest);
        match old(&mut found) {
            true => self.refresh(),
            false => found,
        }
    }
}
