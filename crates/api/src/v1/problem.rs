//! Errors of the API, and its version.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Kind of error; stable, for programs. `not_found`: no such object or path; `exists`: the name is
/// taken or the drive is in use; `invalid`: malformed request; `refused`: allowed only with an
/// explicit option such as `force` or `accept_…`; `busy`: another operation must end first;
/// `no_space`; `io`: a drive, file or the system failed; `damaged`: metadata on the drives is
/// damaged, or of a newer version; `unauthenticated`: no valid credentials; `forbidden`: the role
/// does not permit it; `too_many`: too many attempts or concurrent requests; `method_not_allowed`;
/// `changed`: `If-Match` does not match; `key_reused`: the `Idempotency-Key` was used for another
/// request; `too_large`: the request is too long; `internal`: a bug in the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// No such object, or no such path.
    NotFound,
    /// The name is taken, or the drive is in use.
    Exists,
    /// Malformed request.
    Invalid,
    /// Refused to protect the caller; an explicit option (`force`, `accept_…`) allows it.
    Refused,
    /// Another operation must end first.
    Busy,
    /// Not enough space.
    NoSpace,
    /// A drive, a file or the system failed.
    Io,
    /// Metadata on the drives is damaged, or of a newer version.
    Damaged,
    /// No valid credentials.
    Unauthenticated,
    /// The caller's role does not permit the operation.
    Forbidden,
    /// Too many attempts, or too many concurrent requests.
    TooMany,
    /// The path exists, but not with this method.
    MethodNotAllowed,
    /// The object has changed: its ETag does not match `If-Match`.
    Changed,
    /// The `Idempotency-Key` was used for another request.
    KeyReused,
    /// The request exceeds the maximum length.
    TooLarge,
    /// Internal error: a bug in the daemon.
    Internal,
}

impl ProblemCode {
    /// All codes.
    pub const ALL: [Self; 16] = [
        Self::NotFound,
        Self::Exists,
        Self::Invalid,
        Self::Refused,
        Self::Busy,
        Self::NoSpace,
        Self::Io,
        Self::Damaged,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::TooMany,
        Self::MethodNotAllowed,
        Self::Changed,
        Self::KeyReused,
        Self::TooLarge,
        Self::Internal,
    ];

    /// HTTP status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Exists | Self::Busy | Self::Refused | Self::NoSpace => 409,
            Self::Changed => 412,
            Self::TooLarge => 413,
            Self::Invalid | Self::KeyReused => 422,
            Self::TooMany => 429,
            Self::Io | Self::Damaged | Self::Internal => 500,
        }
    }
}

/// Why a request was not executed. It had no effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Kind of error, for programs.
    pub code: ProblemCode,
    /// What failed, why, and what to do.
    pub message: String,
}

impl Problem {
    /// A problem with this code and message.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A malformed request; the message says why.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ProblemCode::Invalid, message)
    }

    /// A missing object; the message names it, and the command that lists existing ones.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ProblemCode::NotFound, message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Version of the daemon and its API.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Version of the daemon.
    pub version: String,
    /// Supported API versions.
    pub api: Vec<String>,
}
