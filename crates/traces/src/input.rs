//! A trace's bytes as lines or records of a fixed size, and where in the trace they are.
//!
//! Responsible for: bounds (a line has a largest length) and positions for errors.

use crate::error::Position;
use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// Bytes by which a format is recognised, at the trace's beginning.
const PREFIX: u64 = 4096;
/// Bytes of the longest line, its end included: a path, and numbers.
const LINE_MAX: u64 = 8192;

/// Why a record is not taken.
pub(crate) enum Fault {
    /// The bytes cannot be read.
    Io(io::Error),
    /// The bytes are wrong: half a sentence.
    Wrong(String),
}

impl Fault {
    pub fn wrong(why: impl Into<String>) -> Self {
        Self::Wrong(why.into())
    }
}

/// How a trace begins.
pub(crate) struct Prefix {
    pub bytes: Vec<u8>,
    /// The trace has no more bytes than these.
    pub is_whole: bool,
}

impl Prefix {
    /// The first line that is not blank, if it ends within the prefix.
    pub fn first_line(&self) -> Option<&str> {
        let mut lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        let line = lines.find(|line| !line.trim_ascii().is_empty())?;
        let is_whole = self.is_whole || line.ends_with(b"\n");
        let line = str::from_utf8(line.trim_ascii()).ok()?;
        is_whole.then_some(line)
    }
}

/// A trace that is being read.
pub(crate) struct Input<'a> {
    pub prefix: Prefix,
    rest: &'a mut dyn BufRead,
    /// Bytes of the prefix that were read.
    prefix_used: usize,
    line: Vec<u8>,
    /// Bytes that were read.
    bytes: u64,
    position: Position,
}

impl<'a> Input<'a> {
    pub fn new(rest: &'a mut dyn BufRead) -> io::Result<Self> {
        let mut bytes = Vec::new();
        rest.take(PREFIX).read_to_end(&mut bytes)?;
        let is_whole = (bytes.len() as u64) < PREFIX;
        Ok(Self {
            prefix: Prefix { bytes, is_whole },
            rest,
            prefix_used: 0,
            line: Vec::new(),
            bytes: 0,
            position: Position::Byte(0),
        })
    }

    /// Where what was read last begins.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The next line that is not blank, without white space around it.
    pub fn line(&mut self) -> Result<Option<Cow<'_, str>>, Fault> {
        loop {
            let before = match self.position {
                Position::Line(line) => line,
                Position::Byte(_) => 0,
            };
            self.position = Position::Line(before + 1);
            self.line.clear();
            let unread = &self.prefix.bytes[self.prefix_used..];
            let mut reader = unread.chain(&mut *self.rest).take(LINE_MAX);
            let length = reader.read_until(b'\n', &mut self.line);
            let length = length.map_err(Fault::Io)?;
            self.prefix_used += length.min(unread.len());
            if length == 0 {
                return Ok(None);
            }
            if length as u64 == LINE_MAX && !self.line.ends_with(b"\n") {
                let why = format!("the line is longer than {LINE_MAX} bytes");
                return Err(Fault::Wrong(why));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(String::from_utf8_lossy(self.line.trim_ascii())))
    }

    /// The next record of `N` bytes.
    pub fn record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Fault> {
        self.position = Position::Byte(self.bytes);
        let mut record = [0; N];
        let length = self.fill(&mut record)?;
        match length {
            0 => Ok(None),
            _ if length == N => Ok(Some(record)),
            _ => Err(cut(length, N)),
        }
    }

    /// Passes over bytes that belong to the record that was read last.
    pub fn skip(&mut self, count: u16) -> Result<(), Fault> {
        let mut bytes = vec![0; usize::from(count)];
        let length = self.fill(&mut bytes)?;
        if length < bytes.len() {
            return Err(cut(length, bytes.len()));
        }
        Ok(())
    }

    /// Reads until the bytes are full or the trace ends, and says how many it has.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, Fault> {
        let mut filled = 0;
        while filled < bytes.len() {
            let unread = &self.prefix.bytes[self.prefix_used..];
            let mut reader = unread.chain(&mut *self.rest);
            match reader.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(length) => {
                    self.prefix_used += length.min(unread.len());
                    filled += length;
                }
                Err(failed) if failed.kind() == io::ErrorKind::Interrupted => {}
                Err(failed) => return Err(Fault::Io(failed)),
            }
        }
        self.bytes += filled as u64;
        Ok(filled)
    }
}

fn cut(has: usize, needs: usize) -> Fault {
    Fault::Wrong(format!(
        "the trace ends within a record ({has} of {needs} bytes are there)"
    ))
}
