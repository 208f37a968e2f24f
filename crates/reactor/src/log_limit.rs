//! A limit for log messages that a peer can cause.
//!
//! A token bucket: a burst is logged as it comes, then one message per interval. Suppressed messages are counted, and the
//! next message that is logged says how many that were.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Messages that are logged one after the other.
const BURST: u32 = 10;
/// Time in which one further message is logged.
const INTERVAL: Duration = Duration::from_secs(10);

/// Says whether a message may be logged. One for all messages of an export or a listener: what it was told lately has to
/// outlive the connections of a peer that connects in a loop.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Messages that were logged and do not count as forgotten yet.
    logged: u32,
    /// When the number above was last lowered.
    since: Option<Instant>,
    left_out: u64,
}

impl LogLimit {
    /// A limit of 10 messages, then of one in 10 s.
    pub const fn new() -> Self {
        Self(Mutex::new(State {
            logged: 0,
            since: None,
            left_out: 0,
        }))
    }

    /// Whether a message may be logged now: how many were left out before it, which it should say.
    pub fn admit(&self) -> Option<u64> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *state.since.get_or_insert(now);
        let intervals = now.saturating_duration_since(since).as_secs() / INTERVAL.as_secs();
        let forgotten = u32::try_from(intervals).unwrap_or(u32::MAX);
        if forgotten >= state.logged {
            (state.logged, state.since) = (0, Some(now));
        } else {
            state.logged -= forgotten;
            state.since = Some(since + INTERVAL * forgotten);
        }
        if state.logged >= BURST {
            state.left_out += 1;
            return None;
        }
        state.logged += 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_logged_then_one_message_an_interval() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let admitted = |from_s: u64, count: u32| {
            let at = start + Duration::from_secs(from_s);
            (0..count)
                .filter_map(|_| limit.admit_at(at))
                .collect::<Vec<_>>()
        };
        assert_eq!(admitted(0, 1000), [0; BURST as usize]);
        assert_eq!(admitted(9, 10), []);
        assert_eq!(admitted(10, 10), [1000], "it says how many were left out");
        assert_eq!(admitted(15, 1), []);
        assert_eq!(admitted(20, 2), [10]);
        assert_eq!(
            admitted(3600, 1000).len(),
            BURST as usize,
            "all is forgotten"
        );
    }

    #[test]
    fn a_message_now_and_then_is_always_logged() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        for round in 0..1000 {
            let at = start + INTERVAL * round;
            assert_eq!(limit.admit_at(at), Some(0), "round {round}");
        }
    }
}
