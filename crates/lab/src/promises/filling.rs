//! The fast tier is full, and only demotion frees space: policy 1 writes at its rate while level 3 floods.

use super::arguments::Filling;
use super::scene::{self, Kind, Volume, paced, tenant, verdict};
use crate::failure::{Failure, Result};
use crate::screen::{self, Progress, thousands};
use crate::tenants::{Attained, Crowd, Drives, Outcome, POOL, Stage, Tenant};
use std::path::Path;
use std::time::Duration;

const FIRST: &str = "policy-1";
const FLOOD: &str = "flood";
const WRITES: Kind = Kind {
    blocks: "4k",
    read_percent: 0,
    depth: 64,
};
const FLOODING: Kind = Kind {
    blocks: "64k",
    read_percent: 0,
    depth: 32,
};
/// Maximum p99, in milliseconds.
const LATENCY_MS: f64 = 10.0;
/// Examines the pool, one each half a second, after which a dirty part that grew no more is as full as it becomes.
const STEADY: usize = 6;
const LITTLE: f64 = 0.005;
const HALF: f64 = 0.5;

/// Whether as much is demoted as is written: the dirty part of the fast tier has stopped growing.
fn is_full(dirty: &[f64]) -> bool {
    let Some((now, before)) = dirty.last().zip(dirty.iter().rev().nth(STEADY)) else {
        return false;
    };
    *now >= HALF && now - before < LITTLE
}

fn both(volumes: &[Volume; 2], with: &Filling) -> Result<Vec<Tenant>> {
    Ok(vec![
        paced(&volumes[0], WRITES, f64::from(with.rate), 0)?,
        tenant(&volumes[1], FLOODING, 1)?,
    ])
}

/// Floods until the fast tier is full; the dirty part then.
fn fill_up(stage: &Stage, volumes: &[Volume; 2], with: &Filling) -> Result<f64> {
    let crowd = Crowd::start(both(volumes, with)?, Duration::from_secs(with.filling))?;
    let (mut dirty, mut progress) = (Vec::new(), Progress::new());
    let outcome = crowd.finish(|crowd| {
        let pool = stage.daemon.pool(POOL)?;
        dirty.push(pool.fast_dirty as f64 / pool.fast_capacity.max(1) as f64);
        let last = dirty.last().copied().unwrap_or_default();
        if progress.is_due() {
            progress.draw(&format!("  filling: {:.0} % dirty", 100.0 * last));
        }
        if is_full(&dirty) {
            crowd.stop();
        }
        Ok(())
    })?;
    progress.clear();
    scene::settled(outcome)?;
    match is_full(&dirty) {
        true => Ok(dirty.last().copied().unwrap_or_default()),
        false => Err(Failure::new(format!(
            "the fast tier is not full after {} s: take a smaller --fast or a longer --filling",
            with.filling
        ))),
    }
}

fn row(name: &str, tenant: &Attained) -> Vec<String> {
    let ms = |percent| format!("{:.2}", tenant.percentile_ns(percent) as f64 / 1e6);
    vec![
        name.to_owned(),
        tenant.name.clone(),
        thousands(tenant.iops()),
        thousands(tenant.bytes_per_s() / f64::from(1 << 20)),
        ms(50.0),
        ms(99.0),
        ms(100.0),
    ]
}

fn show(phases: &[(&str, Outcome)]) {
    let rows = phases.iter().flat_map(|(name, outcome)| {
        let tenants = outcome.tenants.iter().enumerate();
        tenants.map(move |(number, tenant)| row(if number == 0 { name } else { "" }, tenant))
    });
    let head = [
        "fast tier full",
        "tenant",
        "IOPS",
        "MiB/s",
        "p50 ms",
        "p99 ms",
        "max ms",
    ];
    println!("{}", screen::table(&head, &rows.collect::<Vec<_>>()));
    if let Some((_, outcome)) = phases.last() {
        let p99_ms = outcome.of(FIRST).percentile_ns(99.0) as f64 / 1e6;
        verdict(
            p99_ms <= LATENCY_MS,
            &format!("write p99 of policy 1 at most {LATENCY_MS} ms while level 3 floods"),
            &format!("{p99_ms:.2} ms"),
        );
    }
}

fn go(
    stage: &Stage,
    volumes: &[Volume; 2],
    with: &Filling,
) -> Result<Vec<(&'static str, Outcome)>> {
    let alone = paced(&volumes[0], WRITES, f64::from(with.rate), 0)?;
    let mut phases = vec![("no: alone", scene::measure(vec![alone], with.seconds)?)];
    let dirty = fill_up(stage, volumes, with)?;
    println!("  full: {:.0} % of the fast tier is dirty", 100.0 * dirty);
    phases.push((
        "without policies",
        scene::measure(both(volumes, with)?, with.seconds)?,
    ));
    let figures = [
        "--min-iops",
        &with.rate.to_string(),
        "--max-latency",
        "10ms",
    ];
    stage.policy(FIRST, 1, &figures)?;
    stage.give(FIRST, FIRST)?;
    stage.give(FLOOD, "3")?;
    phases.push(("with", scene::measure(both(volumes, with)?, with.seconds)?));
    Ok(phases)
}

fn volumes(stage: &Stage, with: &Filling) -> Result<[Volume; 2]> {
    let first = stage.filled_guest(FIRST, with.volume)?;
    stage.volume(FLOOD, with.flood)?;
    let flood = stage.export_guest(FLOOD)?;
    let volume = |name: &str, disk, bytes| Volume {
        name: name.to_owned(),
        disk,
        bytes,
    };
    Ok([
        volume(FIRST, first, with.volume),
        volume(FLOOD, flood, with.flood),
    ])
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Filling) -> Result<()> {
    println!(
        "{} writes of 4 KiB a second with policy 1, beside first writes of 64 KiB, {} outstanding, with level 3; a fast tier \
         of {}; {} s each",
        with.rate,
        FLOODING.depth,
        units::format_bytes(with.fast),
        with.seconds
    );
    let drives = Drives {
        fast: with.fast,
        slow: with.volume + with.flood + scene::POOL_BYTES,
    };
    let mut stage = Stage::new(convect, "filling", drives, &with.behind)?;
    let made = volumes(&stage, with);
    let volumes = stage.explain(made)?;
    let measured = go(&stage, &volumes, with);
    show(&stage.explain(measured)?);
    stage.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_full_when_its_dirty_part_has_stopped_growing() {
        let steady = [0.84; STEADY + 1];
        assert!(is_full(&steady));
        assert!(!is_full(&steady[1..]));
        assert!(!is_full(&[0.2; STEADY + 1]));
        let growing: Vec<f64> = (0..10).map(|step| 0.5 + 0.02 * f64::from(step)).collect();
        assert!(!is_full(&growing));
    }
}
