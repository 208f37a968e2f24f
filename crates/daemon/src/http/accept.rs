//! Connections are accepted at a bounded rate, by every listener in the same way.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Connections that a listener accepts in a second; more wait in the kernel's backlog. Accepting so many takes a few
/// hundredths of a core.
const RATE: u32 = 1000;
/// So many are accepted at once after a while without any.
const BURST: u32 = 64;
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / RATE as u64);
/// How long to wait when the system gives no connection (out of descriptors, say).
const RETRY_TIME: Duration = Duration::from_millis(100);

/// When the next connection may be accepted: the generic cell rate algorithm (ITU-T I.371).
pub struct Pace {
    /// When it would be the next one's turn at the rate alone.
    due: Instant,
}

impl Pace {
    /// Nothing was accepted yet.
    pub fn new() -> Self {
        Self {
            due: Instant::now(),
        }
    }

    /// Takes a turn; how long it is until then.
    fn turn(&mut self, now: Instant) -> Duration {
        let due = self.due.max(now);
        self.due = due + INTERVAL;
        due.saturating_duration_since(now + INTERVAL * BURST)
    }

    /// The next connection of a listener, when it is its turn. An error is logged, and accepting tried again.
    pub async fn next<T>(
        &mut self,
        mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> T {
        loop {
            let wait = self.turn(Instant::now());
            if !wait.is_zero() {
                sleep(wait).await;
            }
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
    fn a_burst_is_accepted_at_once_and_no_more_than_the_rate_after_it() {
        let began = Instant::now();
        let mut pace = Pace { due: began };
        let mut now = began;
        let mut at_once = 0;
        for _ in 0..5 * RATE {
            let wait = pace.turn(now);
            at_once += u32::from(now == began && wait.is_zero());
            now += wait;
        }
        assert!((BURST..BURST + 2).contains(&at_once), "{at_once}");
        let took = (now - began).as_secs_f64();
        assert!((4.9..5.0).contains(&took), "{took}");
        // What was not used counts as one burst, however long it was.
        now += Duration::from_secs(3600);
        let more = (0..RATE).filter(|_| pace.turn(now).is_zero()).count();
        assert!((64..66).contains(&more), "{more}");
    }

    #[test]
    fn waiting_too_long_does_not_lower_the_rate() {
        let began = Instant::now();
        let mut pace = Pace { due: began };
        let mut now = began;
        for _ in 0..5 * RATE {
            let wait = pace.turn(now);
            // Timers have a resolution of a millisecond.
            now += match wait.is_zero() {
                true => wait,
                false => wait + Duration::from_millis(1),
            };
        }
        let took = (now - began).as_secs_f64();
        assert!((4.9..5.1).contains(&took), "{took}");
    }
}
