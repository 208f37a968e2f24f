//! Connections are accepted at a bounded rate, by every listener in the same way.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Connections that a listener accepts in a second; more wait in the kernel's backlog. Accepting so many takes a few
/// hundredths of a core.
const RATE: u64 = 1000;
/// So many are accepted at once after a while without any.
const BURST: u64 = 64;
const INTERVAL_NS: u64 = 1_000_000_000 / RATE;
/// How long to wait when the system gives no connection (out of descriptors, say).
const RETRY_TIME: Duration = Duration::from_millis(100);

/// When the next connection may be accepted.
pub struct Pace {
    since: Instant,
    pace: reactor::Pace,
}

impl Pace {
    /// Nothing was accepted yet.
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            pace: reactor::Pace::new(BURST, INTERVAL_NS),
        }
    }

    /// Waits until one more may be accepted.
    async fn turn(&mut self) {
        let since = self.since;
        let now_ns = || since.elapsed().as_nanos() as u64;
        while let Err(free_ns) = self.pace.take(now_ns(), 1) {
            sleep_until(since + Duration::from_nanos(free_ns)).await;
        }
    }

    /// The next connection of a listener, when it is its turn. An error is logged, and accepting tried again.
    pub async fn next<T>(
        &mut self,
        mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> T {
        loop {
            self.turn().await;
            match poll_fn(&mut accept).await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::error!("a connection could not be accepted: {error}");
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
    fn no_more_than_a_burst_and_the_rate_are_accepted() {
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
