//! Locks of state that stays sound when a thread panics while it holds them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one that a thread held when it panicked: what such a mutex guards is changed by whole steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
