//! The command: the traces, the tables of each size, and a summary.

use super::blocks::Uses;
use super::cost::Tally;
use super::forecast::{self, Forecast};
use super::summary::Summary;
use super::{hits, live, report, shipping, tiered};
use crate::arguments::Replay;
use crate::daemon::find_binary;
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use rivals::{Belady, Lru, POLICIES};
use std::path::Path;
use traces::Request;
use units::EXTENT_BLOCKS;

/// Blocks of a synthetic trace: 1 GiB.
const SYNTHETIC_BLOCKS: u64 = 1 << 18;
/// Requests of one, unless said otherwise.
const SYNTHETIC_REQUESTS: u64 = 500_000;
/// Blocks of the extents of the published policies: 64 KiB.
const EXTENT: u64 = EXTENT_BLOCKS as u64;

/// Reads or makes the traces, replays them, and prints what came of it.
///
/// # Errors
/// When a trace cannot be read or made, a daemon that is to play it cannot be started, or a person ends it.
pub fn run(convect: Option<&Path>, with: &Replay) -> Result<()> {
    if with.traces.is_empty() && with.synthetic.is_empty() {
        let text = "nothing to replay: name a trace's file, or one of --synthetic's";
        return Err(Failure::new(text));
    }
    let mut summary = Summary::default();
    for path in &with.traces {
        let trace = traces::read(path, with.format, with.limit);
        let trace = trace.during(|| "the trace cannot be replayed".to_owned())?;
        let requests = trace.requests.get(with.skip..).unwrap_or_default();
        report::print_head(&path.display().to_string(), Some(&trace), requests);
        replay(convect, with, requests, &mut summary)?;
    }
    for name in &with.synthetic {
        let requests = with.limit.unwrap_or(SYNTHETIC_REQUESTS);
        let made = traces::synthetic::make(name, SYNTHETIC_BLOCKS, requests, with.seed);
        let made = made.during(|| "the trace cannot be made".to_owned())?;
        let requests = made.get(with.skip..).unwrap_or_default();
        report::print_head(name, None, requests);
        replay(convect, with, requests, &mut summary)?;
    }
    summary.print();
    Ok(())
}

fn replay(
    convect: Option<&Path>,
    with: &Replay,
    requests: &[Request],
    summary: &mut Summary,
) -> Result<()> {
    let uses = Uses::of(requests);
    if let Some(place) = &with.on {
        return live::elsewhere(with, requests, place);
    }
    if with.live {
        return live::pools(&find_binary(convect)?, with, requests, uses.distinct);
    }
    let forecast = Forecast::of(&uses.keys);
    for percent in &with.sizes {
        interrupt::check()?;
        let capacity = uses.distinct as usize * usize::from(*percent) / 100;
        report::print_size(*percent, capacity);
        let tiers = tiers(requests, capacity as u64, with.seed)?;
        report::print_tiers(&tiers);
        let hits = hits::all(&uses.keys, capacity, with.seed)?;
        report::print_hits(&hits);
        let twice = shipping::replay(requests, 2 * capacity as u64, with.seed)?;
        let gain = forecast::gain(requests, uses.distinct, capacity as u64, with.seed);
        forecast.print(&hits, &tiers, &twice, gain, capacity as u64);
        summary.add(&tiers, &hits);
    }
    Ok(())
}

/// Every policy in front of the model, with a total of fast blocks.
fn tiers(requests: &[Request], blocks: u64, seed: u64) -> Result<Vec<Tally>> {
    let mut tallies = vec![shipping::replay(requests, blocks, seed)?];
    for (extent, size) in [(EXTENT, "64k"), (4 * EXTENT, "256k"), (1, "4k")] {
        let mut lru = Lru::new((blocks / extent) as usize);
        let name = format!("lru-{size}");
        tallies.push(tiered::replay(name, requests, extent, &mut lru)?);
    }
    let extents = (blocks / EXTENT) as usize;
    for policy in POLICIES.iter().filter(|policy| policy.name != "lru") {
        let mut cache = (policy.make)(extents);
        let name = format!("{}-64k", policy.name);
        tallies.push(tiered::replay(name, requests, EXTENT, cache.as_mut())?);
    }
    let keys = tiered::keys(requests, EXTENT);
    let mut belady = Belady::new(extents, &keys);
    let name = "belady-64k".to_owned();
    tallies.push(tiered::replay(name, requests, EXTENT, &mut belady)?);
    Ok(tallies)
}
