//! Minimums that exceed the capacity: level 5 misses its minimum first, level 1 last, and no volume starves.

use super::arguments::Infeasible;
use super::scene::{self, USUAL, Volume, measure, tenant, verdict};
use crate::failure::Result;
use crate::screen::{self, thousands};
use crate::tenants::{Attained, Outcome, Stage};
use std::path::Path;

/// One volume of each level.
const NAMES: [&str; 5] = ["level-1", "level-2", "level-3", "level-4", "level-5"];
/// Per cent of its minimum that level 1 has to get, and the minimum for all.
const FIRST_PERCENT: f64 = 98.0;
const LEAST_PERCENT: f64 = 1.0;
/// Per cent of their floors by which two levels differ clearly, and what is next to nothing of one.
const NOISE_PERCENT: f64 = 2.0;
const NOTHING_PERCENT: f64 = 5.0;

fn all(volumes: &[Volume], seconds: u64) -> Result<Outcome> {
    let tenants: Result<Vec<_>> = volumes
        .iter()
        .map(|volume| tenant(volume, USUAL, 0))
        .collect();
    measure(tenants?, seconds)
}

/// Whether levels lose their floors in their order: one that has its floor may be followed by anything, and one that
/// misses a part of it only by one that clearly misses more, or has next to nothing.
fn is_ordered(percent: &[f64]) -> bool {
    let pairs = percent.windows(2);
    let mut pairs = pairs.map(|pair| (pair[0].min(100.0), pair[1].min(100.0)));
    pairs.all(|(level, below)| {
        level >= FIRST_PERCENT || below + NOISE_PERCENT <= level || below <= NOTHING_PERCENT
    })
}

fn show(volumes: &[Volume], before: &Outcome, after: &Outcome, floor: f64) {
    let percent: Vec<f64> = volumes
        .iter()
        .map(|volume| 100.0 * after.of(&volume.name).iops() / floor.max(1.0))
        .collect();
    let rows = volumes.iter().zip(&percent).map(|(volume, percent)| {
        vec![
            volume.name.clone(),
            thousands(before.of(&volume.name).iops()),
            thousands(floor),
            thousands(after.of(&volume.name).iops()),
            format!("{percent:.1}"),
        ]
    });
    let head = ["", "without, IOPS", "floor", "with, IOPS", "% of floor"];
    println!("{}", screen::table(&head, &rows.collect::<Vec<_>>()));
    let sum = |outcome: &Outcome| outcome.tenants.iter().map(Attained::iops).sum::<f64>();
    let (total, without) = (sum(after), sum(before));
    println!(
        "  with policies all five get {} IOPS, {:.0} % of those without; the floors are {:.0} % of that\n",
        thousands(total),
        100.0 * total / without.max(1.0),
        100.0 * floor * volumes.len() as f64 / total.max(1.0)
    );
    let least = percent.iter().copied().fold(f64::INFINITY, f64::min);
    let seen: Vec<String> = percent.iter().map(|part| format!("{part:.1}")).collect();
    let seen = format!("{} %", seen.join(", "));
    verdict(
        is_ordered(&percent),
        "level 5 loses first, level 1 last",
        &seen,
    );
    let first = format!("{:.1} %", percent[0]);
    verdict(
        percent[0] >= FIRST_PERCENT,
        &format!("policy 1 gets at least {FIRST_PERCENT} % of its floor"),
        &first,
    );
    verdict(
        least >= LEAST_PERCENT,
        &format!("no volume is below {LEAST_PERCENT} %"),
        &format!("{least:.1} %"),
    );
}

fn go(stage: &Stage, volumes: &[Volume], with: &Infeasible) -> Result<()> {
    let before = all(volumes, with.seconds.div_ceil(2))?;
    let total: f64 = before.tenants.iter().map(Attained::iops).sum();
    let floor = (total * f64::from(with.percent) / 100.0 / NAMES.len() as f64).floor();
    println!(
        "  without policies all five get {} IOPS; each is guaranteed {}",
        thousands(total),
        thousands(floor)
    );
    let iops = (floor as u64).to_string();
    for (level, volume) in (1..).zip(volumes) {
        stage.policy(&volume.name, level, &["--min-iops", &iops])?;
        stage.give(&volume.name, &volume.name)?;
    }
    let after = all(volumes, with.seconds)?;
    show(volumes, &before, &after, floor);
    Ok(())
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Infeasible) -> Result<()> {
    let (mut stage, volumes) = scene::pool(convect, "infeasible", &with.pool, &NAMES)?;
    let measured = go(&stage, &volumes, with);
    stage.explain(measured)?;
    stage.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_levels_and_what_is_beyond_a_floor_does_not_count() {
        for (percent, ordered) in [
            (&[99.0, 100.0, 99.5, 40.0, 1.2][..], true),
            (&[120.0, 130.0, 100.0, 50.0, 50.0], false),
            (&[60.6, 60.4, 60.6, 60.4, 60.7], false),
            (&[98.5, 70.0, 4.0, 1.5, 1.6], true),
            (&[98.0, 97.0, 50.0, 60.0, 2.0], false),
            (&[90.0, 100.0], false),
            (&[98.0, 100.0], true),
        ] {
            assert_eq!(is_ordered(percent), ordered, "{percent:?}");
        }
    }
}
