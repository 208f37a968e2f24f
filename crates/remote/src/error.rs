//! Errors of requests to a daemon on another host.

/// A message that says what failed, why, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The input is invalid.
    #[error("{0}")]
    Usage(String),
    /// The operation failed.
    #[error("{0}")]
    Failed(String),
}
