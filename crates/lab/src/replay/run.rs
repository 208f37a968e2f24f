//! The command: the trace, its uses, and the table of each size.

use super::blocks::Uses;
use super::{hits, report};
use crate::arguments::Replay;
use crate::failure::{Failure, Result, While};
use crate::interrupt;

/// Blocks of a synthetic trace: 1 GiB.
const SYNTHETIC_BLOCKS: u64 = 1 << 18;
/// Requests of one, unless said otherwise.
const SYNTHETIC_REQUESTS: u64 = 500_000;

/// Reads or makes the trace, replays it, and prints what came of it.
pub fn run(with: &Replay) -> Result<()> {
    let uses = match (&with.trace, &with.synthetic) {
        (Some(path), _) => {
            let trace = traces::read(path, with.format, with.limit);
            let trace = trace.during(|| "the trace cannot be replayed".to_owned())?;
            report::print_head(&path.display().to_string(), Some(&trace), &trace.requests);
            Uses::of(&trace.requests)
        }
        (None, Some(name)) => {
            let requests = with.limit.unwrap_or(SYNTHETIC_REQUESTS);
            let made = traces::synthetic::make(name, SYNTHETIC_BLOCKS, requests, with.seed);
            let made = made.during(|| "the trace cannot be made".to_owned())?;
            report::print_head(name, None, &made);
            Uses::of(&made)
        }
        (None, None) => {
            let text = "nothing to replay: name a trace's file, or one of --synthetic's";
            return Err(Failure::new(text));
        }
    };
    for percent in &with.sizes {
        interrupt::check()?;
        let capacity = uses.distinct as usize * usize::from(*percent) / 100;
        report::print_size(*percent, capacity, &hits::all(&uses.keys, capacity)?);
    }
    Ok(())
}
