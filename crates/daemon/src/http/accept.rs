//! Rate-limited accept loop, shared by all listeners.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Maximum connections accepted per second; more wait in the kernel's backlog. Accepting at this
/// rate takes a few percent of a core.
const RATE: u64 = 1000;
/// Burst of connections accepted after an idle period.
const BURST: u64 = 64;
const INTERVAL_NS: u64 = 1_000_000_000 / RATE;
/// Delay after a failed accept (out of descriptors, for example).
const RETRY_TIME: Duration = Duration::from_millis(100);

/// Token bucket of a listener.
pub struct Pace {
    since: Instant,
    pace: reactor::Pace,
}

impl Pace {
    /// A full bucket.
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            pace: reactor::Pace::new(BURST, INTERVAL_NS),
        }
    }

    /// Waits for a token.
    async fn turn(&mut self) {
        let since = self.since;
        let now_ns = || since.elapsed().as_nanos() as u64;
        while let Err(free_ns) = self.pace.take(now_ns(), 1) {
            sleep_until(since + Duration::from_nanos(free_ns)).await;
        }
    }

    /// Accepts the next connection. An error is logged and retried.
    pub async fn next<T>(
        &mut self,
        mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> T {
        loop {
            self.turn().await;
            match poll_fn(&mut accept).await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::error!("cannot accept a connection: {error}");
                    sleep(RETRY_TIME).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_are_limited_by_burst_and_rate() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut pace = Pace::new();
            let began = Instant::now();
            for _ in 0..BURST + RATE / 4 {
                pace.next(|_| Poll::Ready(Ok(()))).await;
            }
            let took = began.elapsed();
            assert!(took >= Duration::from_millis(249), "{took:?}");
        });
    }
}
