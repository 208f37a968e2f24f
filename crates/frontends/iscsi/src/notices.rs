//! Log messages about refused hosts and protocol violations: who, from where and why, without
//! secrets, rate-limited so that peers cannot flood the log.

use reactor::LogLimit;
use std::fmt::{self, Display};

/// Maximum length of a peer's text, in characters.
const SHOWN_MAX: usize = 256;

/// A peer's text for the log: truncated, and without control characters.
pub(crate) struct Shown<'a>(pub &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.chars().take(SHOWN_MAX);
        shown
            .flat_map(char::escape_default)
            .try_for_each(|letter| write!(f, "{letter}"))
    }
}

/// Logs a refusal or a protocol violation.
pub(crate) fn refused(peer: impl Display, why: impl Display) {
    static LIMIT: LogLimit = LogLimit::new();
    match LIMIT.admit() {
        Some(0) => tracing::warn!("iSCSI, {peer}: {why}"),
        Some(more) => {
            tracing::warn!("iSCSI, {peer}: {why} ({more} similar messages suppressed)");
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_text_cannot_forge_log_lines() {
        assert_eq!(Shown("a\nb\u{1b}").to_string(), "a\\nb\\u{1b}");
        assert_eq!(Shown(&"x".repeat(9999)).to_string().len(), SHOWN_MAX);
    }
}
