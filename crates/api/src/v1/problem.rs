//! What every refusal looks like, and the version.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// What kind of refusal it is; stable, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// There is no such thing, or no such address.
    NotFound,
    /// The name is taken, or the drive is in use.
    Exists,
    /// The request itself is wrong.
    Invalid,
    /// Refused for the caller's own good; an explicit word (`force`, `accept_…`) allows it.
    Refused,
    /// Something else has to end first.
    Busy,
    /// Not enough space.
    NoSpace,
    /// A drive, file or the system failed.
    Io,
    /// What lies on the drives is damaged or too new.
    Damaged,
    /// The caller did not say who they are, or not so that it is believed.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// Too many attempts, or too many at a time.
    TooMany,
    /// The address exists and the method does not.
    MethodNotAllowed,
    /// The object is not as the caller saw it (`If-Match`).
    Changed,
    /// The `Idempotency-Key` was used for another request.
    KeyReused,
    /// The request is longer than the daemon reads.
    TooLarge,
    /// The daemon itself is wrong.
    Internal,
}

impl ProblemCode {
    /// Every code.
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

    /// The HTTP status that it travels with.
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

/// Why a request was not carried out: nothing of it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// For programs.
    pub code: ProblemCode,
    /// For people: what, why, and what to do.
    pub message: String,
}

impl Problem {
    /// A problem with a sentence.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The request itself is wrong: why.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ProblemCode::Invalid, message)
    }

    /// There is no such thing: which, and what shows those that are.
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

/// What answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// The daemon's version.
    pub version: String,
    /// Versions of this interface that it serves.
    pub api: Vec<String>,
}
