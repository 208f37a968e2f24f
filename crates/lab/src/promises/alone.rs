//! What a policy costs who is alone: nothing is to be held for anybody.

use super::arguments::Alone;
use super::scene::{self, USUAL, Volume, alone, verdict};
use crate::failure::Result;
use crate::screen::{self, Progress, thousands};
use crate::scrub_cost::median;
use crate::tenants::Stage;
use std::path::Path;

/// Policies by their numbers.
const POLICIES: [&str; 5] = ["1", "2", "3", "4", "5"];
/// Per cent of what a volume without a policy gets.
const LEAST_PERCENT: f64 = 99.0;

/// What one policy got, and its neighbours in time without one, of each round.
#[derive(Default)]
struct Rounds {
    iops: Vec<f64>,
    without: Vec<f64>,
    percent: Vec<f64>,
}

fn go(stage: &Stage, volume: &Volume, with: &Alone) -> Result<Vec<Rounds>> {
    let mut all: Vec<Rounds> = POLICIES.iter().map(|_| Rounds::default()).collect();
    let mut progress = Progress::new();
    // The first one warms up and does not count.
    alone(volume, USUAL, with.seconds)?;
    let mut before = alone(volume, USUAL, with.seconds)?;
    for round in 1..=with.rounds {
        for (policy, rounds) in POLICIES.iter().zip(&mut all) {
            if progress.is_due() {
                progress.draw(&format!(
                    "  round {round} of {}, policy {policy}",
                    with.rounds
                ));
            }
            stage.give(&volume.name, policy)?;
            let iops = alone(volume, USUAL, with.seconds)?;
            stage.give(&volume.name, "none")?;
            let after = alone(volume, USUAL, with.seconds)?;
            let without = (before + after) / 2.0;
            rounds.iops.push(iops);
            rounds.without.push(without);
            rounds.percent.push(100.0 * iops / without.max(1.0));
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
        ]
    });
    let head = ["", "IOPS", "without", "%", "of all rounds"];
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
