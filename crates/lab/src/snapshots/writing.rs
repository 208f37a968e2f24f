//! The first writes after a snapshot.

use super::overlay;
use super::run::{delete, load, round_of_writes, settle, snapshot};
use crate::arguments::Snapshots;
use crate::failure::{Result, While};
use crate::fio::Figures;
use crate::scene::Scene;
use crate::screen::thousands;
use crate::scrub_cost::median;
use std::fs;

/// Result of one round of writes.
pub(super) struct Round {
    iops: f64,
    /// Bytes that drives were written for each request.
    bytes: f64,
}

impl Round {
    /// Of what fio says, and the bytes that were written meanwhile.
    pub fn new(figures: &Figures, bytes: f64) -> Self {
        let count = figures.iops * figures.took;
        Self {
            iops: figures.iops,
            bytes: bytes / count.max(1.0),
        }
    }
}

/// Bytes that a process has written to drives so far.
pub(super) fn written(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/io");
    let text = fs::read_to_string(&path).during(|| format!("cannot read {path}"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(f64::NAN))
}

/// Prints rounds before and after.
pub(super) fn compare(what: &str, rounds: &[Vec<Round>; 2]) {
    let each = |figure: fn(&Round) -> f64| {
        rounds.each_ref().map(|rounds| {
            let all: Vec<f64> = rounds.iter().map(figure).collect();
            median(&all)
        })
    };
    let [before, after] = each(|round| round.iops);
    let [bytes_before, bytes_after] = each(|round| round.bytes);
    println!(
        "{what}: {} IOPS, {} before: {:.0} %; bytes written to drives a request: {:.0}, {:.0} before: {:.2} times",
        thousands(after),
        thousands(before),
        100.0 * after / before.max(1.0),
        bytes_after,
        bytes_before,
        bytes_after / bytes_before.max(1.0)
    );
}

/// The writes right after a snapshot, beside those right before it, and the same of others.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    let writes = round_of_writes(scene, with);
    let mut rounds = [Vec::new(), Vec::new()];
    for round in 0..with.rounds {
        let name = format!("first{round}");
        for (after, what) in ["before", "after"].iter().enumerate() {
            if after == 1 {
                snapshot(scene, &name)?;
            }
            let began = written(scene.daemon.pid())?;
            let figures = load(scene, what, &writes, || Ok(()))?;
            let bytes = written(scene.daemon.pid())? - began;
            rounds[after].push(Round::new(&figures, bytes));
        }
        delete(scene, &[name])?;
        settle(scene)?;
    }
    compare("writes after one", &rounds);
    overlay::measure(scene, with)
}
