//! State that all lanes share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What all lanes have in common.
pub(super) struct Shared {
    begun: Instant,
    /// Nothing more is to be sent.
    pub stop: AtomicBool,
    /// Nothing more is waited for.
    pub abandon: AtomicBool,
    /// Requests that may still be sent, where they are counted.
    pub left: AtomicI64,
    /// When something was last answered on any connection, in nanoseconds after the beginning.
    pub last_ns: AtomicU64,
    /// When the load was to end, in nanoseconds after the beginning.
    pub end_ns: u64,
    /// If it was interrupted before that.
    pub stopped_ns: AtomicU64,
    /// Why a lane ended before it was to.
    pub failure: Mutex<Option<String>>,
}

impl Shared {
    pub fn new(requests: Option<u64>, end_ns: u64) -> Self {
        Self {
            begun: Instant::now(),
            stop: AtomicBool::new(false),
            abandon: AtomicBool::new(false),
            left: AtomicI64::new(requests.map_or(i64::MAX, |count| count as i64)),
            last_ns: AtomicU64::new(0),
            end_ns,
            stopped_ns: AtomicU64::new(u64::MAX),
            failure: Mutex::default(),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Takes one of the requests that may still be sent.
    pub fn takes_one(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) > 0
    }
}

/// The counts of a lane before its panic are valid.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
