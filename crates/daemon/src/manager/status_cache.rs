//! The status of all pools, polled once a second and shared by all readers that need not have it to the moment.
//!
//! Polling asks each shard once. A status is shared for 1.2 s; a reader that finds none so new polls for itself, and one
//! that waits for the next is woken by whoever polls first.

use crate::Control;
use crate::clock::since_1970;
use crate::sync::lock;
use engine::PoolLook;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A status that is older is not shared; a reader that waits so long for the next polls for itself.
const FRESH: Duration = Duration::from_millis(1200);

/// The status of all pools at one poll.
pub struct CachedStatus {
    /// Its number: each poll has the next one.
    pub number: u64,
    began: Instant,
    /// When: milliseconds since 1970.
    pub at_ms: u64,
    /// How long it took.
    pub took: Duration,
    /// The pools, by name.
    pub pools: Vec<PoolLook>,
}

/// The newest status, and who waits for the next.
pub struct StatusCache {
    control: Arc<dyn Control>,
    newest: Mutex<Arc<CachedStatus>>,
    refreshed: Condvar,
}

impl StatusCache {
    /// A cache that nothing was put in yet.
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

    /// Polls now, for all who wait for it.
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

    /// The newest status; polled now when that is old.
    pub fn recent(&self) -> Arc<CachedStatus> {
        let newest = Arc::clone(&lock(&self.newest));
        match newest.number == 0 || newest.began.elapsed() > FRESH {
            true => self.refresh(),
            false => newest,
        }
    }

    /// The first status after the one of this number, whoever polls it; after 0, one that is polled now.
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
