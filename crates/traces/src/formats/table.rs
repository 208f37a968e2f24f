//! The table of formats. A new one is a row here, a file beside this one, and a sample in
//! `tests/traces/formats.rs`.

use super::{blkparse, blktrace, csv, fio_iolog, lis, msr, oracle_general, vscsi};
use crate::collector::Collector;
use crate::error::TraceErrorKind;
use crate::input::{Fault, Input, Prefix};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

struct Row {
    name: &'static str,
    about: &'static str,
    /// Parts of the names of files in this format, in lower case.
    files: &'static [&'static str],
    /// Whether a trace that begins so is probably in this format.
    is_like: fn(&Prefix) -> bool,
    take: fn(&mut Input, &mut Collector) -> Result<(), Fault>,
}

const FORMATS: &[Row] = &[
    Row {
        name: "vscsi",
        about: "VMware vscsiStats, version 1 or 2, as of the CloudPhysics traces",
        files: &[".vscsi"],
        is_like: vscsi::is_like,
        take: vscsi::take,
    },
    Row {
        name: "msr",
        about: "CSV of the MSR Cambridge traces",
        files: &[".csv"],
        is_like: msr::is_like,
        take: msr::take,
    },
    Row {
        name: "fio-iolog",
        about: "log of fio's --write_iolog, version 2 or 3",
        files: &[".iolog"],
        is_like: fio_iolog::is_like,
        take: fio_iolog::take,
    },
    Row {
        name: "blktrace",
        about: "binary trace of Linux blktrace, of one CPU or merged with `blkparse -d`",
        files: &[".blktrace"],
        is_like: blktrace::is_like,
        take: blktrace::take,
    },
    Row {
        name: "blkparse",
        about: "text that blkparse prints by default",
        files: &[".blkparse"],
        is_like: blkparse::is_like,
        take: blkparse::take,
    },
    Row {
        name: "lis",
        about: "traces of the ARC paper, without direction and time",
        files: &[".lis"],
        is_like: lis::is_like,
        take: lis::take,
    },
    Row {
        name: "oracle-general",
        about: "oracleGeneral of libCacheSim, made from a block trace, without direction",
        files: &[".oraclegeneral"],
        is_like: oracle_general::is_like,
        take: oracle_general::take,
    },
    Row {
        name: "csv",
        about: "CSV with a header that has time_us, op, offset and length",
        files: &[".csv"],
        is_like: csv::is_like,
        take: csv::take,
    },
];

/// A trace format. Its text form is its name.
#[derive(Clone, Copy)]
pub struct Format(&'static Row);

/// There is no format of this name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("there is no trace format {0:?}: use {names}", names = names())]
pub struct UnknownFormat(pub String);

impl Format {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(Self)
    }

    /// Its name, as `--format` takes it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// What it is, in half a sentence.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    pub(crate) fn take(self, input: &mut Input, collector: &mut Collector) -> Result<(), Fault> {
        (self.0.take)(input, collector)
    }

    fn is_named_like(self, file: &str) -> bool {
        self.0.files.iter().any(|part| file.contains(part))
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Format({})", self.name())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let mut all = Self::all();
        let found = all.find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The names of all formats, as a list for people.
pub(crate) fn names() -> String {
    let names: Vec<_> = Format::all().map(Format::name).collect();
    names.join(", ")
}

/// The one format that a trace is in, by its content, else by its file's name.
pub(crate) fn recognise(prefix: &Prefix, file: &str) -> Result<Format, TraceErrorKind> {
    let file = file.to_lowercase();
    let mut candidates: Vec<_> = Format::all().filter(|f| (f.0.is_like)(prefix)).collect();
    if candidates.is_empty() {
        candidates = Format::all().collect();
        candidates.retain(|format| format.is_named_like(&file));
    }
    match candidates[..] {
        [] => Err(TraceErrorKind::Unrecognised),
        [format] => Ok(format),
        _ => Err(TraceErrorKind::Ambiguous(candidates)),
    }
}
