//! Why a daemon on another host could not be asked.

/// A sentence that says what, why and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// What was written cannot be.
    #[error("{0}")]
    Usage(String),
    /// It was tried and did not go.
    #[error("{0}")]
    Failed(String),
}
