//! Why a pool could not be examined.

use std::fmt;

/// A sentence: what, why, and what to do. The pool may be intact; it was not examined, or not to
/// the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InspectError(String);

impl InspectError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InspectError {}

/// Result of the tools.
pub type Result<T> = std::result::Result<T, InspectError>;
