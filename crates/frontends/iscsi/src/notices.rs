//! What is logged of hosts that are refused or break the rules: who, from where and why, never a secret;
//! and so few lines that nobody fills a log by trying.

use std::fmt::{self, Display};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines of one spell, and how long a spell is.
const LINES_MAX: u32 = 20;
const SPELL: Duration = Duration::from_secs(10);
/// Longest piece of what a peer sent, in characters.
const SHOWN_MAX: usize = 256;

/// What may still be logged.
struct Budget {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

/// Whether a line is logged, and how many were left out before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Logged(u64),
    LeftOut,
}

impl Budget {
    const fn new() -> Self {
        Self {
            began: None,
            lines: 0,
            left_out: 0,
        }
    }

    fn take(&mut self, now: Instant) -> Turn {
        let is_over = self
            .began
            .is_none_or(|began| now.saturating_duration_since(began) >= SPELL);
        if is_over {
            (self.began, self.lines) = (Some(now), 0);
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return Turn::LeftOut;
        }
        self.lines += 1;
        Turn::Logged(std::mem::take(&mut self.left_out))
    }
}

/// A text of a peer, as it may stand in a log: bounded, and without control characters.
pub(crate) struct Shown<'a>(pub &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.chars().take(SHOWN_MAX);
        shown
            .flat_map(char::escape_default)
            .try_for_each(|letter| write!(f, "{letter}"))
    }
}

/// Logs that a host was refused, or did what it may not.
pub(crate) fn refused(peer: impl Display, why: impl Display) {
    static BUDGET: Mutex<Budget> = Mutex::new(Budget::new());
    let mut budget = BUDGET.lock().unwrap_or_else(PoisonError::into_inner);
    let turn = budget.take(Instant::now());
    drop(budget);
    match turn {
        Turn::Logged(0) => tracing::warn!("iSCSI, {peer}: {why}"),
        Turn::Logged(more) => {
            tracing::warn!("iSCSI, {peer}: {why} (and {more} lines like it that were left out)");
        }
        Turn::LeftOut => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let (mut budget, start) = (Budget::new(), Instant::now());
        let turns: Vec<_> = (0..30).map(|_| budget.take(start)).collect();
        let logged = turns
            .iter()
            .filter(|turn| **turn == Turn::Logged(0))
            .count();
        assert_eq!(logged, LINES_MAX as usize);
        assert_eq!(budget.take(start + SPELL), Turn::Logged(10));
        assert_eq!(budget.take(start + SPELL), Turn::Logged(0));
    }

    #[test]
    fn what_a_peer_says_forges_no_line() {
        assert_eq!(Shown("a\nb\u{1b}").to_string(), "a\\nb\\u{1b}");
        assert_eq!(Shown(&"x".repeat(9999)).to_string().len(), SHOWN_MAX);
    }
}
