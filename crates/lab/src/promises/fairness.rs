//! Fairness by cost: two volumes with the same policy get the same time, whatever the size of their requests.
//!
//! What a request costs is measured alone: a volume that gets R requests per second when it has everything uses a part of
//! r / R of the time when it gets r.

use super::arguments::Fairness;
use super::scene::{self, Kind, Volume, alone, measure, tenant, verdict};
use crate::failure::Result;
use crate::screen::{self, Progress, thousands};
use crate::scrub_cost::median;
use crate::tenants::Stage;
use std::path::Path;

const NAMES: [&str; 2] = ["small", "large"];
const KINDS: [Kind; 2] = [
    Kind {
        blocks: "4k",
        read_percent: 100,
        depth: 64,
    },
    Kind {
        blocks: "256k",
        read_percent: 100,
        depth: 16,
    },
];
/// Per cent by which their parts of the time may differ.
const APART_PERCENT: f64 = 5.0;

/// Results of one volume in each round.
#[derive(Default)]
struct Rounds {
    alone: Vec<f64>,
    together: Vec<f64>,
    part: Vec<f64>,
}

fn go(volumes: &[Volume], with: &Fairness) -> Result<[Rounds; 2]> {
    let mut all: [Rounds; 2] = Default::default();
    let mut progress = Progress::new();
    for round in 1..=with.rounds {
        if progress.is_due() {
            progress.draw(&format!("  round {round} of {}", with.rounds));
        }
        let mut costs = [0.0; 2];
        for (number, volume) in volumes.iter().enumerate() {
            costs[number] = alone(volume, KINDS[number], with.seconds)?;
        }
        let mut tenants = Vec::new();
        for (volume, kind) in volumes.iter().zip(KINDS) {
            tenants.push(tenant(volume, kind, 0)?);
        }
        let outcome = measure(tenants, with.seconds)?;
        for (number, rounds) in all.iter_mut().enumerate() {
            let together = outcome.of(NAMES[number]).iops();
            rounds.alone.push(costs[number]);
            rounds.together.push(together);
            rounds.part.push(100.0 * together / costs[number].max(1.0));
        }
    }
    progress.clear();
    Ok(all)
}

fn show(all: &[Rounds; 2]) {
    let rows = KINDS.iter().zip(all).map(|(kind, rounds)| {
        vec![
            kind.blocks.to_owned(),
            thousands(median(&rounds.alone)),
            thousands(median(&rounds.together)),
            format!("{:.1}", median(&rounds.part)),
        ]
    });
    let head = ["", "alone, IOPS", "together, IOPS", "% of the time"];
    println!("{}", screen::table(&head, &rows.collect::<Vec<_>>()));
    let pairs = all[0].part.iter().zip(&all[1].part);
    let apart: Vec<f64> = pairs
        .map(|(small, large)| 100.0 * (small / large.max(f64::MIN_POSITIVE) - 1.0))
        .collect();
    let apart = median(&apart);
    verdict(
        apart.abs() <= APART_PERCENT,
        &format!("both get time within {APART_PERCENT} %"),
        &format!("the small ones get {apart:+.1} %"),
    );
}

fn prepare(stage: &Stage, volumes: &[Volume], with: &Fairness) -> Result<[Rounds; 2]> {
    for volume in volumes {
        stage.give(&volume.name, &with.policy)?;
    }
    go(volumes, with)
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Fairness) -> Result<()> {
    println!(
        "random reads of 4 KiB and of 256 KiB, both volumes with policy {}, for {} s each; medians of {} rounds",
        with.policy, with.seconds, with.rounds
    );
    let (mut stage, volumes) = scene::pool(convect, "fairness", &with.pool, &NAMES)?;
    let measured = prepare(&stage, &volumes, with);
    show(&stage.explain(measured)?);
    stage.stop()
}
