//! Why a trace is not read.

use crate::formats::{Format, names};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Which trace was not read, and why.
#[derive(Debug, Error)]
#[error("{}: {kind}", name(path.as_deref()))]
pub struct TraceError {
    /// The trace's file; none where it came from a reader.
    pub path: Option<PathBuf>,
    /// Why it was not read.
    pub kind: TraceErrorKind,
}

/// Why a trace is not read: what is wrong, and what to do.
#[derive(Debug, Error)]
pub enum TraceErrorKind {
    /// The file cannot be opened.
    #[error("it cannot be opened ({0}): check its path and its permissions")]
    Open(#[source] io::Error),
    /// Reading or decompressing it failed.
    #[error("{0}: reading failed ({1}): the file may be cut off or damaged, so copy it again")]
    Read(Position, #[source] io::Error),
    /// It is in none of the formats.
    #[error(
        "its format is not recognised: name it with --format, which knows {}",
        names()
    )]
    Unrecognised,
    /// It may be in one of several formats.
    #[error("it may be in one of several formats: give {}", choice(.0))]
    Ambiguous(Vec<Format>),
    /// A record is wrong.
    #[error(
        "{position}: {why}, read as {format}: remove this record, read only what is before it with \
         a limit, or name the right format with --format"
    )]
    Damaged {
        /// Where the record is.
        position: Position,
        /// The format as which it was read.
        format: Format,
        /// What is wrong with it.
        why: String,
    },
    /// It has no reads or writes.
    #[error(
        "it has no reads or writes, only {ignored} other records: check that it is the right file, \
         and that it was recorded and copied in full"
    )]
    Empty {
        /// Records that are no reads or writes.
        ignored: u64,
    },
}

/// Where in a trace a record is. In a compressed trace the place is that after decompression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// The line, from one.
    Line(u64),
    /// The byte at which the record begins, from zero.
    Byte(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

fn name(path: Option<&Path>) -> String {
    path.map_or_else(|| "the trace".to_owned(), |path| path.display().to_string())
}

fn choice(formats: &[Format]) -> String {
    let options: Vec<_> = formats.iter().map(|f| format!("--format {f}")).collect();
    options.join(" or ")
}
