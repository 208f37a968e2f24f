//! `convect snapshot diff`.

use super::snapshot::named;
use crate::show::{print, print_json, read};
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{ChangedRange, SnapshotDiff};
use std::fmt::Write;
use units::format_bytes;

/// Ranges per request.
const RANGES: &str = "4096";

/// Merges adjacent ranges of successive responses and counts bytes.
#[derive(Default)]
struct ChangeMerger {
    /// The last range, which the next response may continue.
    last: Option<ChangedRange>,
    ranges: u64,
    /// Bytes of data and of zeroes.
    data: u64,
    zeroes: u64,
    text: String,
}

impl ChangeMerger {
    fn add(&mut self, range: ChangedRange) {
        match &mut self.last {
            Some(last) if last.offset + last.len == range.offset && last.data == range.data => {
                last.len += range.len;
            }
            _ => {
                self.end_range();
                self.last = Some(range);
            }
        }
    }

    fn end_range(&mut self) {
        let Some(ChangedRange { offset, len, data }) = self.last.take() else {
            return;
        };
        self.ranges += 1;
        let (bytes, what) = match data {
            true => (&mut self.data, "data"),
            false => (&mut self.zeroes, "zeroes"),
        };
        *bytes += len;
        let _ = writeln!(self.text, "{offset:>16}  {len:>16}  {what}");
    }
}

/// Lists the ranges that changed from `from` to `to`, or to its volume's present content.
pub fn diff(client: &Client, json: bool, from: &str, to: Option<&str>) -> Result<(), Failure> {
    let (pool, volume, name) = named(from)?;
    let (pool_of_to, to_volume, to_name) = match to {
        None => (pool, volume, None),
        Some(to) if to.contains('@') => {
            let (pool, volume, name) = named(to)?;
            (pool, volume, Some(name))
        }
        Some(to) => {
            let (pool, volume) = object(to)?;
            (pool, volume, None)
        }
    };
    if pool_of_to != pool {
        return Err(Failure::Usage(format!(
            "'{from}' and '{pool_of_to}/{to_volume}' are in different pools: compare snapshots of \
             one volume, or of its clones"
        )));
    }
    let from = format!("{volume}@{name}");
    let mut told = ChangeMerger::default();
    if !json {
        print(&format!("{:>16}  {:>16}  NOW\n", "OFFSET", "LENGTH"))?;
    }
    let mut start = 0;
    loop {
        let begin = start.to_string();
        let asked = [
            ("from", from.as_str()),
            ("start", &begin),
            ("limit", RANGES),
        ];
        let to = to_name.map(|name| ("to", name));
        let query: Vec<_> = asked.into_iter().chain(to).collect();
        let segments = [pool, to_volume];
        let answer = client.call(Operation::SnapshotDiff, &segments, &query, None)?;
        let part: SnapshotDiff = read(&answer)?;
        if json {
            print_json(&answer, false)?;
        }
        part.ranges.iter().for_each(|range| told.add(*range));
        if !json {
            print(&std::mem::take(&mut told.text))?;
        }
        match part.next {
            Some(next) if next > start => start = next,
            Some(next) => {
                return Err(Failure::Failed(format!(
                    "the daemon's response for {start} continues at {next}: use the convect \
                     client of its version"
                )));
            }
            None if json => return Ok(()),
            None => {
                told.end_range();
                let total = format!(
                    "{} changed in {} ranges of {}: {} data, {} zeroes\n",
                    format_bytes(told.data + told.zeroes),
                    told.ranges,
                    format_bytes(part.size),
                    format_bytes(told.data),
                    format_bytes(told.zeroes)
                );
                return print(&(told.text + &total));
            }
        }
    }
}
