//! Logs of fio: what `--write_iolog` writes and `--read_iolog` replays.
//!
//! Origin: fio's HOWTO, "Trace file format v2" and "v3". After `fio version 2 iolog` each line is
//! `file action` (add, open, close) or `file action offset length`, in bytes. Version 3 puts a
//! time before the file: microseconds since the run began, which the HOWTO does not say, but fio
//! 3.33 writes. In version 2 time passes by `wait`, whose offset is microseconds since the wait
//! before it; without any, all is at time zero. Files are the devices; their names have no spaces,
//! in fio too.

use crate::collector::{Access, Collector};
use crate::fields::{number, shown};
use crate::input::{Fault, Input, Prefix};

const HEADER: &str = "fio version ";

pub(super) fn is_like(prefix: &Prefix) -> bool {
    prefix.bytes.starts_with(HEADER.as_bytes())
}

/// Whether lines have a time: they do in version 3.
fn is_timed(header: &str) -> Result<bool, Fault> {
    match header {
        "fio version 2 iolog" => Ok(false),
        "fio version 3 iolog" => Ok(true),
        _ => {
            let header = shown(header);
            let why = format!("the first line is {header}, not `fio version 2 iolog` or 3");
            Err(Fault::Wrong(why))
        }
    }
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    let is_timed = match input.line()? {
        Some(header) => is_timed(&header)?,
        None => return Ok(()),
    };
    let mut time_us = 0;
    while !out.is_full()
        && let Some(line) = input.line()?
    {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        match fields[..] {
            [time, ref action @ ..] if is_timed => {
                time_us = number("the time", time)?;
                act(action, &mut time_us, out)?;
            }
            _ => act(&fields, &mut time_us, out)?,
        }
    }
    Ok(())
}

/// Takes one line without its time.
fn act(fields: &[&str], time_us: &mut u64, out: &mut Collector) -> Result<(), Fault> {
    let (file, action, offset, length) = match *fields {
        [_, "add" | "open" | "close"] => return Ok(()),
        [_, "sync" | "datasync" | "sync_file_range" | "trim", ..] => {
            out.ignore();
            return Ok(());
        }
        [file, action @ ("read" | "write" | "wait"), offset, length] => {
            let offset = number("the offset", offset)?;
            (file, action, offset, number("the length", length)?)
        }
        [_, action, ..] => {
            let (action, count) = (shown(action), fields.len());
            let why = format!("there is no action {action} with {count} fields");
            return Err(Fault::Wrong(why));
        }
        _ => return Err(Fault::wrong("the line has no action")),
    };
    if action == "wait" {
        *time_us = time_us.saturating_add(offset);
        return Ok(());
    }
    let device = out.device(file)?;
    out.add(&Access {
        time_us: *time_us,
        device,
        write: action == "write",
        offset,
        length,
    })
}
