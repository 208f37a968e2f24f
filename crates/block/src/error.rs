//! Errors of operations and of drives: few kinds, each with a description.

use std::fmt;

/// Kinds of errors, from which front ends choose their protocol's status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ErrorKind {
    /// The operation is malformed: outside of the volume, not aligned to the LBA, too long.
    Invalid,
    /// The pool has no space left for this write; reads continue.
    NoSpace,
    /// The volume or its pool may only be read.
    ReadOnly,
    /// Data could not be read back as it was written, and no copy is left that could mend it.
    Medium,
    /// A drive failed or is gone, and the layout has no copy.
    Device,
    /// The volume was deleted, its pool exported or the daemon is stopping.
    Gone,
    /// The volume, or this kind of operation, is not supported.
    Unsupported,
}

/// Why an operation failed: the kind for the program and a sentence for the person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoError {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// Details for people, without the kind.
    pub context: String,
}

impl IoError {
    /// An error of `kind` with a sentence that says what happened.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into(),
        }
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ErrorKind::Invalid => "invalid request",
            ErrorKind::NoSpace => "no space left in the pool",
            ErrorKind::ReadOnly => "read-only",
            ErrorKind::Medium => "unreadable data",
            ErrorKind::Device => "drive failure",
            ErrorKind::Gone => "the volume no longer exists",
            ErrorKind::Unsupported => "not supported",
        };
        if self.context.is_empty() {
            f.write_str(kind)
        } else {
            write!(f, "{kind}: {}", self.context)
        }
    }
}

impl std::error::Error for IoError {}

/// Failure of a request to a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveError {
    /// The operating system's error number.
    Os(i32),
    /// Fewer bytes were moved than asked for: counted as an error, never as success.
    Short {
        /// Bytes asked for.
        wanted: u32,
        /// Bytes moved.
        moved: u32,
    },
    /// The request is outside of the drive or is not aligned to its logical sector.
    Bounds,
    /// The drive was taken away or its queue closed before the request ended.
    Gone,
    /// The drive did not answer within the deadline. A write may still reach it later.
    Timeout,
    /// The bytes read do not carry the checksum that they were written with, on any member.
    Checksum,
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(code) => write!(f, "{}", std::io::Error::from_raw_os_error(*code)),
            Self::Short { wanted, moved } => write!(
                f,
                "moved only {moved} of {wanted} bytes, as with a file on a full file system"
            ),
            Self::Bounds => {
                f.write_str("request outside of the drive or not aligned to its sectors")
            }
            Self::Gone => f.write_str("the drive has disappeared"),
            Self::Timeout => f.write_str("the drive did not respond in time"),
            Self::Checksum => f.write_str("the data does not match its checksum"),
        }
    }
}

impl std::error::Error for DriveError {}
