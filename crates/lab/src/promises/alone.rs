//! The cost of a policy for a volume without competition: nothing may be held.
//!
//! Rates of a machine that others use differ by more than a policy costs. Requests for each second of the daemon's processor
//! time are shown beside them, which others change less.

use super::arguments::Alone;
use super::scene::{self, USUAL, Volume, alone, verdict};
use crate::failure::Result;
use crate::machine;
use crate::screen::{self, Progress, thousands};
use crate::scrub_cost::median;
use crate::tenants::Stage;
use std::path::Path;
use std::time::Instant;

/// Policies by their numbers.
const POLICIES: [&str; 5] = ["1", "2", "3", "4", "5"];
/// Per cent of what a volume without a policy gets.
const LEAST_PERCENT: f64 = 99.0;

/// Results with one policy, and of the adjacent rounds without one.
#[derive(Default)]
struct Rounds {
    iops: Vec<f64>,
    without: Vec<f64>,
    percent: Vec<f64>,
    /// The same of requests for each second of the daemon's processor time.
    percent_by_core: Vec<f64>,
}

/// Requests a second, and for each second of the daemon's processor time.
fn measure(stage: &Stage, volume: &Volume, seconds: u64) -> Result<[f64; 2]> {
    let pid = stage.daemon.pid();
    let (begun, before) = (Instant::now(), machine::processor_seconds(pid)?);
    let iops = alone(volume, USUAL, seconds)?;
    let cores = (machine::processor_seconds(pid)? - before) / begun.elapsed().as_secs_f64();
    Ok([iops, iops / cores.max(f64::MIN_POSITIVE)])
}

fn go(stage: &Stage, volume: &Volume, with: &Alone) -> Result<Vec<Rounds>> {
    let mut all: Vec<Rounds> = POLICIES.iter().map(|_| Rounds::default()).collect();
    let mut progress = Progress::new();
    // The first one warms up and does not count.
    measure(stage, volume, with.seconds)?;
    let mut before = measure(stage, volume, with.seconds)?;
    for round in 1..=with.rounds {
        for (policy, rounds) in POLICIES.iter().zip(&mut all) {
            if progress.is_due() {
                progress.draw(&format!(
                    "  round {round} of {}, policy {policy}",
                    with.rounds
                ));
            }
            stage.give(&volume.name, policy)?;
            let seen = measure(stage, volume, with.seconds)?;
            stage.give(&volume.name, "none")?;
            let after = measure(stage, volume, with.seconds)?;
            let without = [0, 1].map(|figure| (before[figure] + after[figure]) / 2.0);
            let percent = [0, 1].map(|figure| 100.0 * seen[figure] / without[figure].max(1.0));
            rounds.iops.push(seen[0]);
            rounds.without.push(without[0]);
            rounds.percent.push(percent[0]);
            rounds.percent_by_core.push(percent[1]);
            before = after;
        }
    }
    progress.clear();
    Ok(all)
}

fn show(all: &[Rounds]) {
    let rows = POLICIES.iter().zip(all).map(|(policy, rounds)| {
        let least = rounds.percent.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rounds.percent.iter().copied().fold(0.0, f64::max);
        vec![
            format!("policy {policy}"),
            thousands(median(&rounds.iops)),
            thousands(median(&rounds.without)),
            format!("{:.1}", median(&rounds.percent)),
            format!("{least:.1} to {most:.1}"),
            format!("{:.1}", median(&rounds.percent_by_core)),
        ]
    });
    let head = [
        "",
        "IOPS",
        "without",
        "%",
        "of all rounds",
        "% by processor time",
    ];
    println!("{}", screen::table(&head, &rows.collect::<Vec<_>>()));
    let percent: Vec<f64> = all.iter().map(|rounds| median(&rounds.percent)).collect();
    let least = percent.iter().copied().fold(f64::INFINITY, f64::min);
    verdict(
        least >= LEAST_PERCENT,
        &format!("each policy alone gets at least {LEAST_PERCENT} % of a volume without one"),
        &format!("{least:.1} %"),
    );
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Alone) -> Result<()> {
    println!(
        "4 KiB, 70 % reads, {} outstanding, for {} s each; medians of {} rounds, each policy between two measurements \
         without one",
        USUAL.depth, with.seconds, with.rounds
    );
    let (mut stage, volumes) = scene::pool(convect, "alone", &with.pool, &["alone"])?;
    let measured = go(&stage, &volumes[0], with);
    show(&stage.explain(measured)?);
    stage.stop()
}
