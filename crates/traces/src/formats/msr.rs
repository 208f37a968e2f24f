//! MSR Cambridge: one week of 36 volumes of enterprise servers.
//!
//! Origin: "Write Off-Loading", FAST 2008; SNIA IOTTA trace set 388. Lines without a header:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. The timestamp counts 100 ns from
//! the year 1601 (a Windows file time), offset and size are bytes. A device is named as in the
//! paper: `hm_0` is disk 0 of the host `hm`.

use crate::collector::{Access, Collector};
use crate::fields::{number, shown};
use crate::input::{Fault, Input, Prefix};

/// Ticks of a Windows file time in a microsecond.
const TICKS_PER_US: u64 = 10;

fn direction(kind: &str) -> Option<bool> {
    match kind.trim() {
        kind if kind.eq_ignore_ascii_case("read") => Some(false),
        kind if kind.eq_ignore_ascii_case("write") => Some(true),
        _ => None,
    }
}

/// The seven fields of a line.
fn fields(line: &str) -> Option<[&str; 7]> {
    let fields: Vec<_> = line.split(',').collect();
    fields.try_into().ok()
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    let fields = prefix.first_line().and_then(fields);
    fields.is_some_and(|[time, _, _, kind, ..]| {
        number("the time", time).is_ok() && direction(kind).is_some()
    })
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    while !out.is_full()
        && let Some(line) = input.line()?
    {
        let Some([time, host, disk, kind, offset, size, _]) = fields(&line) else {
            let count = line.split(',').count();
            let why = format!("the line has {count} fields between commas, not 7");
            return Err(Fault::Wrong(why));
        };
        let Some(write) = direction(kind) else {
            let why = format!("the type is {}, not Read or Write", shown(kind));
            return Err(Fault::Wrong(why));
        };
        let device = out.device(&format!("{host}_{disk}"))?;
        out.add(&Access {
            time_us: number("the timestamp", time)? / TICKS_PER_US,
            device,
            write,
            offset: number("the offset", offset)?,
            length: number("the size", size)?,
        })?;
    }
    Ok(())
}
