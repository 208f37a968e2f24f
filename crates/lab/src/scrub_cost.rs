//! The cost of a scrub for hosts: 4 KiB random requests with and without one, alternating.

use crate::arguments::ScrubCost;
use crate::failure::{Failure, Result};
use crate::fio::{self, Load, Pattern};
use crate::scene::{POOL, Scene, Sizes};
use crate::screen::{self, Progress, thousands};
use std::path::Path;
use std::time::Instant;
use units::format_bytes;

/// Size of the raw file that a scene has beside the pool; nothing is measured on it here.
const RAW: u64 = 1 << 20;
/// Queue depth: busy, without saturation.
const DEPTH: u32 = 16;

/// Figures of the rounds with or without a scrub.
#[derive(Default)]
struct Rounds {
    p99_ns: Vec<f64>,
    iops: Vec<f64>,
    scrubbed: u64,
    seconds: f64,
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn round(
    scene: &Scene,
    pattern: Pattern,
    with: &ScrubCost,
    scrubs: bool,
    into: &mut Rounds,
) -> Result<()> {
    if scrubs {
        scene.daemon.run(&["pool", "scrub", POOL])?;
    }
    let mut load = Load::random(scene.target(), pattern, 0, with.volume, with.seconds);
    load.depth = DEPTH;
    let begun = Instant::now();
    let name = if scrubs { "with a scrub" } else { "without" };
    let mut progress = Progress::new();
    let figures = fio::run(&load, scene.scratch.path(), || {
        if progress.is_due() {
            let went = begun.elapsed().as_secs_f64();
            let bar = screen::bar(went / with.seconds as f64, 30);
            progress.draw(&format!("  {pattern:?} {name} {bar} {went:.0} s"));
        }
        Ok(())
    })?;
    progress.clear();
    if scrubs {
        let scrub = scene.daemon.pool(POOL)?.scrub;
        if scrub.state != "running" {
            return Err(Failure::new(
                "the scrub ended before the measurement: take a bigger --volume or fewer --seconds",
            ));
        }
        into.scrubbed += scrub.bytes;
        into.seconds += begun.elapsed().as_secs_f64();
        scene.daemon.run(&["pool", "scrub", POOL, "--cancel"])?;
        crate::interrupt::wait_for(std::time::Duration::from_secs(60), || {
            Ok(scene.daemon.pool(POOL)?.scrub.state != "running")
        })?;
    }
    into.p99_ns.push(figures.p99_ns);
    into.iops.push(figures.iops);
    Ok(())
}

fn measure(scene: &Scene, with: &ScrubCost) -> Result<Vec<Vec<String>>> {
    scene.fill(with.volume)?;
    let mut rows = Vec::new();
    for (pattern, name) in [
        (Pattern::RandomRead, "random reads"),
        (Pattern::RandomWrite, "random writes"),
    ] {
        let (mut without, mut scrubbed) = (Rounds::default(), Rounds::default());
        // The first one warms up and does not count.
        round(scene, pattern, with, false, &mut Rounds::default())?;
        for _ in 0..with.rounds {
            round(scene, pattern, with, false, &mut without)?;
            round(scene, pattern, with, true, &mut scrubbed)?;
        }
        let (alone, beside) = (median(&without.p99_ns), median(&scrubbed.p99_ns));
        let rate = scrubbed.scrubbed as f64 / scrubbed.seconds.max(0.001);
        rows.push(vec![
            name.to_owned(),
            format!("{:.3}", alone / 1e6),
            format!("{:.3}", beside / 1e6),
            format!("{:.2}", beside / alone.max(1.0)),
            thousands(median(&without.iops)),
            thousands(median(&scrubbed.iops)),
            format!("{}/s", format_bytes(rate as u64)),
        ]);
    }
    Ok(rows)
}

/// Fills a volume and measures.
pub fn run(convect: &Path, with: &ScrubCost) -> Result<()> {
    println!(
        "4 KiB random requests, {DEPTH} outstanding, to a volume of {}, with and without a scrub at the \
         default rate; medians of {} rounds of {} s",
        format_bytes(with.volume),
        with.rounds,
        with.seconds
    );
    let mut scene = Scene::new(
        convect,
        "scrub",
        Sizes::whole(with.volume, with.fast, RAW),
        &with.behind,
    )?;
    let measured = measure(&scene, with);
    let rows = scene.daemon.explain(measured)?;
    let head = [
        "",
        "p99 ms",
        "with scrub",
        "ratio",
        "IOPS",
        "with scrub",
        "scrubbed",
    ];
    println!("{}", screen::table(&head, &rows));
    scene.daemon.stop()
}
