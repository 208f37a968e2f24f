//! The wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since 1970; zero if the host's clock is earlier.
pub fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    since_1970().as_secs()
}
