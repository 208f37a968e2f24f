//! Convect's own simple CSV, for traces that come from elsewhere.
//!
//! The first line is a header. It has the columns `time_us` (microseconds), `op`, `offset` and
//! `length` (bytes), in any order, and may have more, which are not read. An `op` is `R`, `W`,
//! `read` or `write`; `D`, `discard`, `trim`, `F`, `flush` and `sync` are counted as ignored. Case
//! does not matter. Nothing is quoted.

use crate::collector::{Access, Collector};
use crate::fields::{number, shown};
use crate::input::{Fault, Input, Prefix};

const COLUMNS: [&str; 4] = ["time_us", "op", "offset", "length"];

/// Where the columns are, or the name of one that is missing.
fn columns(header: &str) -> Result<[usize; 4], &'static str> {
    let mut places = [0; 4];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        let mut columns = header.split(',');
        let found = columns.position(|column| column.trim().eq_ignore_ascii_case(name));
        *place = found.ok_or(name)?;
    }
    Ok(places)
}

enum Op {
    Read,
    Write,
    Other,
}

fn op(field: &str) -> Result<Op, Fault> {
    match field.to_ascii_lowercase().as_str() {
        "r" | "read" => Ok(Op::Read),
        "w" | "write" => Ok(Op::Write),
        "d" | "discard" | "trim" | "f" | "flush" | "sync" => Ok(Op::Other),
        _ => {
            let why = format!("the op is {}, not read or write", shown(field));
            Err(Fault::Wrong(why))
        }
    }
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    prefix
        .first_line()
        .is_some_and(|line| columns(line).is_ok())
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    let places = match input.line()? {
        Some(header) => columns(&header)
            .map_err(|missing| Fault::wrong(format!("the header has no column {missing}")))?,
        None => return Ok(()),
    };
    while !out.is_full()
        && let Some(line) = input.line()?
    {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let column = |column: usize| {
            let missing = || format!("the line has no {}", COLUMNS[column]);
            let field = fields.get(places[column]);
            field.copied().ok_or_else(|| Fault::Wrong(missing()))
        };
        let time_us = number("the time", column(0)?)?;
        let write = match op(column(1)?)? {
            Op::Read => false,
            Op::Write => true,
            Op::Other => {
                out.ignore();
                continue;
            }
        };
        out.add(&Access {
            time_us,
            device: 0,
            write,
            offset: number("the offset", column(2)?)?,
            length: number("the length", column(3)?)?,
        })?;
    }
    Ok(())
}
