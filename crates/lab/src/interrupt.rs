//! SIGINT, SIGTERM and SIGHUP as a flag that every wait checks, so that everything that was started
//! and made is ended and removed by the values that own it.

use crate::failure::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// How often a wait looks up.
const TICK: Duration = Duration::from_millis(20);

/// Begins to watch. A second signal ends the program immediately.
pub fn watch() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&ASKED))?;
        signal_hook::flag::register(signal, Arc::clone(&ASKED))?;
    }
    Ok(())
}

/// Whether an interrupt was received.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// An error after an interrupt.
pub fn check() -> Result<()> {
    if asked() {
        Err(Failure::interrupted())
    } else {
        Ok(())
    }
}

/// Waits, unless interrupted.
pub fn pause(time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(TICK));
    }
}

/// Waits for a condition, at most for `limit`; false when it did not come.
pub fn wait_for(limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<bool> {
    let end = Instant::now() + limit;
    loop {
        if holds()? {
            return Ok(true);
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        pause(TICK / 2)?;
    }
}
