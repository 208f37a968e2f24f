//! Errors that keep the daemon from starting.

use std::fmt;

/// One line that says what failed, why, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServeError(String);

impl ServeError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}
