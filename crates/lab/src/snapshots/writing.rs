//! The first writes after a snapshot.

use super::run::{delete, load, round_of_writes, settle, snapshot};
use crate::arguments::Snapshots;
use crate::failure::{Result, While};
use crate::scene::Scene;
use crate::screen::thousands;
use crate::scrub_cost::median;
use std::fs;

/// Bytes that the daemon had written to its drives.
fn written(scene: &Scene) -> Result<f64> {
    let path = format!("/proc/{}/io", scene.daemon.pid());
    let text = fs::read_to_string(&path).during(|| format!("cannot read {path}"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(f64::NAN))
}

/// The writes right after a snapshot, beside those right before it.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    let writes = round_of_writes(scene, with);
    let mut iops = [Vec::new(), Vec::new()];
    let mut bytes = [Vec::new(), Vec::new()];
    let mut names = Vec::new();
    for round in 0..with.rounds {
        for (after, name) in ["before", "after"].iter().enumerate() {
            if after == 1 {
                names.push(format!("first{round}"));
                snapshot(scene, &format!("first{round}"))?;
            }
            let began = written(scene)?;
            let figures = load(scene, name, &writes, || Ok(()))?;
            let count = figures.iops * figures.took;
            iops[after].push(figures.iops);
            bytes[after].push((written(scene)? - began) / count.max(1.0));
        }
        delete(scene, &std::mem::take(&mut names))?;
        settle(scene)?;
    }
    let [before, after] = iops.map(|iops| median(&iops));
    let [bytes_before, bytes_after] = bytes.map(|bytes| median(&bytes));
    println!(
        "writes after one: {} IOPS, {} before: {:.0} %; bytes written to drives a request: {:.0}, {:.0} before: {:.2} times",
        thousands(after),
        thousands(before),
        100.0 * after / before.max(1.0),
        bytes_after,
        bytes_before,
        bytes_after / bytes_before.max(1.0)
    );
    Ok(())
}
