//! What is logged of hosts that are refused or break the rules: who, from where and why, never a secret;
//! and so few lines that nobody fills a log by trying.

use reactor::LogLimit;
use std::fmt::{self, Display};

/// Longest piece of what a peer sent, in characters.
const SHOWN_MAX: usize = 256;

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
    static LIMIT: LogLimit = LogLimit::new();
    match LIMIT.admit() {
        Some(0) => tracing::warn!("iSCSI, {peer}: {why}"),
        Some(more) => {
            tracing::warn!("iSCSI, {peer}: {why} (and {more} lines like it that were left out)");
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_forges_no_line() {
        assert_eq!(Shown("a\nb\u{1b}").to_string(), "a\\nb\\u{1b}");
        assert_eq!(Shown(&"x".repeat(9999)).to_string().len(), SHOWN_MAX);
    }
}
