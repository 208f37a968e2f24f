//! One look a second at all pools, which everybody shares who need not know it to the moment.

use super::core::{Manager, lock};
use crate::clock::since_1970;
use engine::PoolLook;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A look that is older is not shared; who waits for the next one so long looks for itself.
const FRESH: Duration = Duration::from_millis(1200);

/// What was seen at a look.
pub(super) struct Look {
    /// Its number: each look has the next one.
    pub number: u64,
    began: Instant,
    /// When: milliseconds since 1970.
    pub at_ms: u64,
    /// How long it took.
    pub took: Duration,
    /// The pools, by name.
    pub pools: Vec<PoolLook>,
}

/// The newest look, and who waits for the next.
pub(super) struct Looks {
    newest: Mutex<Arc<Look>>,
    looked: Condvar,
}

impl Default for Looks {
    fn default() -> Self {
        let nothing = Look {
            number: 0,
            began: Instant::now(),
            at_ms: 0,
            took: Duration::ZERO,
            pools: Vec::new(),
        };
        Self {
            newest: Mutex::new(Arc::new(nothing)),
            looked: Condvar::new(),
        }
    }
}

impl Manager {
    /// Looks now, for all who wait for it.
    pub(super) fn look_now(&self) -> Arc<Look> {
        let (began, at) = (Instant::now(), since_1970());
        let mut pools = self.control.look();
        pools.sort_by(|one, other| one.status.name.cmp(&other.status.name));
        let mut newest = lock(&self.looks.newest);
        *newest = Arc::new(Look {
            number: newest.number + 1,
            began,
            at_ms: at.as_millis() as u64,
            took: began.elapsed(),
            pools,
        });
        self.looks.looked.notify_all();
        Arc::clone(&newest)
    }

    /// The newest look, unless that is old.
    pub(super) fn look_lately(&self) -> Arc<Look> {
        let newest = Arc::clone(&lock(&self.looks.newest));
        match newest.number == 0 || newest.began.elapsed() > FRESH {
            true => self.look_now(),
            false => newest,
        }
    }

    /// The first look after the one of this number, whoever makes it; after 0, one that is made now.
    pub(super) fn look_after(&self, number: u64) -> Arc<Look> {
        if number == 0 {
            return self.look_now();
        }
        let newest = lock(&self.looks.newest);
        let old = |look: &mut Arc<Look>| look.number <= number || look.began.elapsed() > FRESH;
        let waited = self.looks.looked.wait_timeout_while(newest, FRESH, old);
        let (newest, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut found = Arc::clone(&newest);
        drop(newest);
        match old(&mut found) {
            true => self.look_now(),
            false => found,
        }
    }
}
