//! Time, for the control plane's own threads. No shard runs here.

use reactor::control;
use std::time::{Duration, Instant};

/// Longest wait for what should take moments, in seconds.
const LONGEST_S: u64 = 10;

/// Now.
#[expect(
    clippy::disallowed_methods,
    reason = "jobs are timed by the wall; shards never see it"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since `began`.
pub fn elapsed_s(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

/// Waits until something is so, at most ten seconds; tells whether it came so.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of the control plane may sleep"
)]
pub fn wait_for(mut so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(LONGEST_S);
    while Instant::now() < deadline {
        if so() {
            return true;
        }
        if !control::step() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    so()
}
