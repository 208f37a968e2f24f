//! Floors that add up to more than there is: level 5 loses its first, level 1 its last, and nobody starves.

use super::arguments::Infeasible;
use super::scene::{self, USUAL, Volume, measure, tenant, verdict};
use crate::failure::Result;
use crate::screen::{self, thousands};
use crate::tenants::{Attained, Outcome, Stage};
use std::path::Path;

/// One volume of each level.
const NAMES: [&str; 5] = ["level-1", "level-2", "level-3", "level-4", "level-5"];
/// Per cent of its floor that level 1 has to get, and that nobody may be below.
const FIRST_PERCENT: f64 = 98.0;
const LEAST_PERCENT: f64 = 1.0;
/// Per cent by which a level may seem to miss more than one that is less important: what counting by windows may miss.
const NOISE_PERCENT: f64 = 2.0;

fn all(volumes: &[Volume], seconds: u64) -> Result<Outcome> {
    let tenants: Result<Vec<_>> = volumes
        .iter()
        .map(|volume| tenant(volume, USUAL, 0))
        .collect();
    measure(tenants?, seconds)
}

/// Whether those that are more important miss no more than those that are less.
fn is_ordered(percent: &[f64]) -> bool {
    let capped: Vec<f64> = percent.iter().map(|percent| percent.min(100.0)).collect();
    capped
        .windows(2)
        .all(|pair| pair[0] + NOISE_PERCENT >= pair[1])
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
    let total: f64 = after.tenants.iter().map(Attained::iops).sum();
    println!(
        "  with policies all five get {} IOPS, of which the floors are {:.0} %\n",
        thousands(total),
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
        &format!("nobody is below {LEAST_PERCENT} %"),
        &format!("{least:.1} %"),
    );
}

fn go(stage: &Stage, volumes: &[Volume], with: &Infeasible) -> Result<()> {
    let before = all(volumes, with.seconds.div_ceil(2))?;
    let total: f64 = before.tenants.iter().map(Attained::iops).sum();
    let floor = (total * f64::from(with.percent) / 100.0 / NAMES.len() as f64).floor();
    println!(
        "  without policies all five get {} IOPS; each is promised {}",
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
            (&[120.0, 130.0, 100.0, 50.0, 50.0], true),
            (&[98.0, 97.0, 50.0, 60.0, 2.0], false),
            (&[90.0, 100.0], false),
        ] {
            assert_eq!(is_ordered(percent), ordered, "{percent:?}");
        }
    }
}
