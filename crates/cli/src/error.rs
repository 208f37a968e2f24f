//! Failures of a command and their exit codes.

use api::v1::{Problem, ProblemCode};
use serde_json::{Value, json};
use std::fmt;
use std::io;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong; no request was sent: exit code 2.
    Usage(String),
    /// The daemon, or the command itself, refused: the exit code depends on the kind.
    Refused(Problem),
    /// No daemon responds, or it cannot be trusted: exit code 7.
    Unreachable(String),
    /// Something else failed: exit code 1.
    Failed(String),
    /// An offline pool could not be checked: exit code 8, as fsck's.
    NotLooked(String),
    /// Everything was printed already; this is the exit code.
    Status(u8),
    /// The user quit; started jobs continue: exit code 130.
    Left(String),
    /// The reader of the output is gone (EPIPE): exit code 0, silently.
    Unread,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(problem) => exit_code_of(problem.code),
            Self::Unreachable(_) => 7,
            Self::NotLooked(_) => 8,
            Self::Status(code) => *code,
            Self::Left(_) => 130,
        }
    }

    /// As one JSON object with a code and the message; nothing if there is no message.
    pub fn to_json(&self) -> Option<Value> {
        let code = match self {
            Self::Unread | Self::Status(_) => return None,
            Self::Failed(_) => json!("failed"),
            Self::Usage(_) => json!("usage"),
            Self::Refused(problem) => json!(problem.code),
            Self::Unreachable(_) => json!("unreachable"),
            Self::NotLooked(_) => json!("not_checked"),
            Self::Left(_) => json!("interrupted"),
        };
        Some(json!({ "code": code, "message": self.to_string() }))
    }

    /// A refusal of the command itself, which an option would allow.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(Problem::new(ProblemCode::Refused, message))
    }

    /// Maps an error of a connection to a daemon on another host.
    pub fn unreachable(error: &remote::Error) -> Self {
        Self::Unreachable(error.to_string())
    }

    /// Maps an error of writing to the standard output.
    pub fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }
}

fn exit_code_of(code: ProblemCode) -> u8 {
    match code {
        ProblemCode::NotFound => 3,
        ProblemCode::Exists => 4,
        ProblemCode::Busy | ProblemCode::TooMany => 5,
        ProblemCode::Refused | ProblemCode::Unauthenticated | ProblemCode::Forbidden => 6,
        ProblemCode::Invalid
        | ProblemCode::NoSpace
        | ProblemCode::Io
        | ProblemCode::Damaged
        | ProblemCode::MethodNotAllowed
        | ProblemCode::Changed
        | ProblemCode::KeyReused
        | ProblemCode::TooLarge
        | ProblemCode::Internal => 1,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Failed(message)
            | Self::Unreachable(message)
            | Self::NotLooked(message)
            | Self::Left(message) => f.write_str(message),
            Self::Refused(problem) => problem.fmt(f),
            Self::Unread | Self::Status(_) => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<remote::Error> for Failure {
    fn from(error: remote::Error) -> Self {
        match error {
            remote::Error::Usage(message) => Self::Usage(message),
            remote::Error::Failed(message) => Self::Failed(message),
        }
    }
}
