//! Reads a trace: opens it, decompresses it, finds its format and takes its requests.

use crate::collector::Collector;
use crate::compression::plain;
use crate::error::{Position, TraceError, TraceErrorKind};
use crate::formats::{Format, recognise};
use crate::input::{Fault, Input};
use crate::request::Request;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The requests of a trace, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Reads and writes, in the order in which the trace has them.
    pub requests: Vec<Request>,
    /// The format as which the trace was read.
    pub format: Format,
    /// Names of the devices, by [`Request::device`]; empty in formats which do not name them, where
    /// all is on device 0.
    pub devices: Vec<String>,
    /// Records that are no reads or writes of at least a byte: discards, flushes, other commands.
    pub ignored: u64,
}

/// Reads the trace in a file, or its first `limit` requests, at least one. Without a format the trace's content
/// tells it, and the file's name where the content does not. It may be compressed with gzip or
/// zstd, whatever its name.
///
/// # Errors
///
/// What [`TraceErrorKind`] lists: the file cannot be read, its format is not known, a record is
/// damaged, or there are no reads or writes.
pub fn read(path: &Path, format: Option<Format>, limit: Option<u64>) -> Result<Trace, TraceError> {
    let failed = |kind| TraceError {
        path: Some(path.to_owned()),
        kind,
    };
    let file = File::open(path).map_err(|error| failed(TraceErrorKind::Open(error)))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    take(BufReader::new(file), format, &name, limit).map_err(failed)
}

/// Reads a trace as [`read`] does, from a reader; only the content can tell its format.
///
/// # Errors
///
/// As [`read`].
pub fn parse(
    reader: impl BufRead,
    format: Option<Format>,
    limit: Option<u64>,
) -> Result<Trace, TraceError> {
    take(reader, format, "", limit).map_err(|kind| TraceError { path: None, kind })
}

fn take(
    reader: impl BufRead,
    format: Option<Format>,
    name: &str,
    limit: Option<u64>,
) -> Result<Trace, TraceErrorKind> {
    let failed = |error| TraceErrorKind::Read(Position::Byte(0), error);
    let mut reader = plain(reader).map_err(failed)?;
    let mut input = Input::new(&mut *reader).map_err(failed)?;
    if input.prefix.bytes.is_empty() {
        return Err(TraceErrorKind::Empty { ignored: 0 });
    }
    let format = match format {
        Some(format) => format,
        None => recognise(&input.prefix, name)?,
    };
    let mut collector = Collector::new(limit);
    let taken = format.take(&mut input, &mut collector);
    let position = input.position();
    taken.map_err(|fault| match fault {
        Fault::Io(error) => TraceErrorKind::Read(position, error),
        Fault::Wrong(why) => TraceErrorKind::Damaged {
            position,
            format,
            why,
        },
    })?;
    if collector.requests.is_empty() {
        let ignored = collector.ignored;
        return Err(TraceErrorKind::Empty { ignored });
    }
    Ok(Trace {
        requests: collector.requests,
        format,
        devices: collector.devices,
        ignored: collector.ignored,
    })
}
