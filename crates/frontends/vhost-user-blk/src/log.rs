//! What an export logs of its monitors and guests, who can cause any of it as often as they like.

use reactor::LogLimit;
use std::fmt::Display;

/// The log of an export, limited over all its connections.
#[derive(Debug)]
pub(crate) struct Log {
    export: String,
    limit: LogLimit,
}

impl Log {
    pub(crate) fn new(export: String) -> Self {
        let limit = LogLimit::new();
        Self { export, limit }
    }

    /// Something ordinary.
    pub(crate) fn info(&self, what: impl Display) {
        if let Some(left_out) = self.limit.admit() {
            tracing::info!(export = self.export, left_out, "{what}");
        }
    }

    /// Something that a monitor or guest did wrong.
    pub(crate) fn warn(&self, what: impl Display) {
        if let Some(left_out) = self.limit.admit() {
            tracing::warn!(export = self.export, left_out, "{what}");
        }
    }

    /// Something that ends a queue or a session.
    pub(crate) fn error(&self, what: impl Display) {
        if let Some(left_out) = self.limit.admit() {
            tracing::error!(export = self.export, left_out, "{what}");
        }
    }
}
