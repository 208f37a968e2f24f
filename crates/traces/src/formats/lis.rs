//! The traces of the ARC paper: disk accesses of workstations and servers.
//!
//! Origin: "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003. Lines of four numbers:
//! the first sector, how many sectors, one that is ignored, and the line's sequence number. Sectors
//! have 512 bytes. There is no direction and no time: all are reads at time zero.

use crate::collector::{Access, Collector};
use crate::fields::{number, sectors};
use crate::input::{Fault, Input, Prefix};

/// The first sector and how many.
fn parse(line: &str) -> Result<(u64, u64), Fault> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let [first, count, ignored, sequence] = fields[..] else {
        let why = format!("the line has {} numbers, not 4", fields.len());
        return Err(Fault::Wrong(why));
    };
    number("the third number", ignored)?;
    number("the sequence number", sequence)?;
    Ok((
        number("the first sector", first)?,
        number("the count of sectors", count)?,
    ))
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    prefix.first_line().is_some_and(|line| parse(line).is_ok())
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    while !out.is_full()
        && let Some(line) = input.line()?
    {
        let (first, count) = parse(&line)?;
        out.add(&Access {
            time_us: 0,
            device: 0,
            write: false,
            offset: sectors("the first sector", first)?,
            length: sectors("the count of sectors", count)?,
        })?;
    }
    Ok(())
}
