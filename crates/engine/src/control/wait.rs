//! Time, for the control plane's own threads. No shard runs here.

use reactor::{control, may_wait};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for what should take moments, in seconds.
const LONGEST_S: u64 = 10;

/// Steps of a simulation in place of that.
const STEPS: u32 = 1_000_000;

/// Now.
#[expect(
    clippy::disallowed_methods,
    reason = "jobs are timed by the wall; shards never see it"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since `began`, to be shown. In a simulation it is never the same twice, so that a run whose digest depends on
/// it is not like the one before.
pub fn elapsed_s(began: Instant) -> f64 {
    static NEVER: AtomicU64 = AtomicU64::new(0);
    match control::is_simulated() {
        true => NEVER.fetch_add(1, Ordering::Relaxed) as f64,
        false => began.elapsed().as_secs_f64(),
    }
}

/// Waits until something is so, at most ten seconds; tells whether it came so. A simulation goes on
/// until it is, or comes to rest.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of the control plane may sleep"
)]
#[must_use = "what was waited for may not have come"]
pub fn wait_for(mut so: impl FnMut() -> bool) -> bool {
    if control::is_simulated() {
        return (0..STEPS).any(|_| so() || !control::step()) && so();
    }
    may_wait();
    let deadline = Instant::now() + Duration::from_secs(LONGEST_S);
    while Instant::now() < deadline {
        if so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    so()
}
