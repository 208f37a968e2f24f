//! Failures of a command and their exit codes.

use api::v1::Problem;
use std::fmt;
use std::io;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong: exit code 2.
    Usage(String),
    /// The daemon refused: exit code 1.
    Refused(Problem),
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
            Self::Refused(_) | Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NotLooked(_) => 8,
            Self::Status(code) => *code,
            Self::Left(_) => 130,
        }
    }

    /// Maps an error of writing to the standard output.
    pub fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Failed(message)
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
