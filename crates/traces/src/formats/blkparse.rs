//! The default output of blkparse.
//!
//! Origin: blkparse(1), "Default output". A line is
//! `8,0    3   1   0.000000000   697  Q   W 223490 + 8 [kjournald]`: device, CPU, sequence number,
//! time in seconds, process, stage, kind, first sector, sectors of 512 bytes, program. Taken is the
//! stage Q (queued), as [`super::blktrace`] says. The list of files at the beginning is passed
//! over, and the statistics that end it are not read.

use crate::collector::{Access, Collector};
use crate::fields::{number, sectors, shown};
use crate::input::{Fault, Input, Prefix};

const US_PER_S: u64 = 1_000_000;
/// Digits of a second's fraction that are microseconds.
const US_DIGITS: usize = 6;

fn is_device(field: &str) -> bool {
    let parts = field.split_once(',');
    parts.is_some_and(|(major, minor)| {
        number("the major", major).is_ok() && number("the minor", minor).is_ok()
    })
}

/// The list of files that blkparse may print first.
fn is_preamble(line: &str) -> bool {
    line.starts_with("Input file ")
}

/// The statistics that blkparse prints last.
fn is_summary(line: &str) -> bool {
    line.starts_with("CPU") || line.starts_with("Total (")
}

fn time_us(field: &str) -> Result<u64, Fault> {
    let (seconds, fraction) = field.split_once('.').unwrap_or((field, ""));
    let seconds = number("the time", seconds)?;
    number("the time's fraction", fraction)?;
    let digits = fraction.bytes().chain(std::iter::repeat(b'0'));
    let digits = digits.take(US_DIGITS);
    let fraction = digits.fold(0, |us, digit| us * 10 + u64::from(digit - b'0'));
    let us = seconds.checked_mul(US_PER_S);
    let us = us.and_then(|us| us.checked_add(fraction));
    us.ok_or_else(|| Fault::wrong(format!("the time is {}, too large", shown(field))))
}

/// Whether a kind is that of a write, or none if neither read nor write, as a discard (D) is. Other
/// letters add to it: F, A, S and M for flush, ahead, synchronous and metadata.
fn direction(kind: &str) -> Option<bool> {
    let is_either = kind.contains(['R', 'W']);
    is_either.then(|| kind.contains('W'))
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    let line = prefix.first_line().unwrap_or_default();
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let is_event = matches!(fields[..], [device, _, _, time, _, _, ..]
        if is_device(device) && time.contains('.') && time_us(time).is_ok());
    is_preamble(line) || is_event
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    while !out.is_full()
        && let Some(line) = input.line()?
        && !is_summary(&line)
    {
        if !is_preamble(&line) {
            let fields: Vec<_> = line.split_ascii_whitespace().collect();
            event(&fields, out)?;
        }
    }
    Ok(())
}

fn event(fields: &[&str], out: &mut Collector) -> Result<(), Fault> {
    let [device, _, _, time, _, stage, rest @ ..] = fields else {
        let why = format!(
            "the line has {} fields, an event has 6 or more",
            fields.len()
        );
        return Err(Fault::Wrong(why));
    };
    if !is_device(device) {
        let why = format!("the device is {}, not like 8,0", shown(device));
        return Err(Fault::Wrong(why));
    }
    if *stage != "Q" {
        return Ok(());
    }
    let request = match rest {
        // A flush without data has no sectors, only the program.
        [_, program, ..] if program.starts_with('[') => None,
        [kind, sector, "+", count, ..] => direction(kind).map(|write| (write, sector, count)),
        _ => return Err(Fault::wrong("the queued request has no `sector + count`")),
    };
    let Some((write, sector, count)) = request else {
        out.ignore();
        return Ok(());
    };
    let device = out.device(device)?;
    out.add(&Access {
        time_us: time_us(time)?,
        device,
        write,
        offset: sectors("the sector", number("the sector", sector)?)?,
        length: sectors(
            "the count of sectors",
            number("the count of sectors", count)?,
        )?,
    })
}
