//! The demonstration from beginning to end.

use super::outcome::Outcome;
use super::{attach, measure, report, strip, table};
use crate::arguments::{Behind, Demo};
use crate::failure::{Result, While};
use crate::fio::{DEPTH, Load, Pattern, Target};
use crate::machine;
use crate::rival::{Format, Rival};
use crate::scene::{DISKS, Scene, Sizes, VOLUME};
use crate::screen::{self, thousands};
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;
use units::format_bytes;

/// Runs in succession.
const RUNS: usize = 4;
/// The hot region is one part in this many of the volume.
const HOT_PART: u64 = 20;
/// Size of the raw file, in bytes; as large as the hot region has to be.
const RAW_MIN: u64 = 64 << 20;
const SECONDS_SHORT: u64 = 15;
const SECONDS_FULL: u64 = 60;
const MIB: u64 = 1 << 20;

/// A measurement: a region and a duration.
struct Plan {
    volume: u64,
    hot: u64,
    seconds: u64,
}

impl Plan {
    fn new(with: &Demo) -> Self {
        let hot = (with.volume / HOT_PART).div_ceil(MIB) * MIB;
        let standard = if with.full {
            SECONDS_FULL
        } else {
            SECONDS_SHORT
        };
        Self {
            volume: with.volume,
            hot,
            seconds: with.seconds.unwrap_or(standard),
        }
    }

    fn raw(&self) -> u64 {
        self.hot.max(RAW_MIN)
    }
}

fn prepare(convect: &Path, with: &Demo, plan: &Plan) -> Result<Scene> {
    println!(
        "1. A pool: a fast drive of {}, {DISKS} modelled 7,200 rpm disks, a thin volume of {}",
        format_bytes(with.fast),
        format_bytes(plan.volume)
    );
    let mut scene = Scene::new(
        convect,
        "demo",
        Sizes::whole(plan.volume, with.fast, plan.raw()),
        &Behind { disks_in: None },
    )?;
    println!("  in {}", scene.scratch.path().display());
    attach::export(&scene)?;
    println!("  exported by NBD, vhost-user-blk and FUSE");
    let filled = scene.fill(plan.volume).and_then(|()| scene.cool());
    scene.daemon.explain(filled)?;
    Ok(scene)
}

fn measure_all(scene: &Scene, plan: &Plan) -> Result<Outcome> {
    println!(
        "\n2. fio: 4 KiB random reads, {DEPTH} outstanding, on {} (5 %) all over the volume, {} s each",
        format_bytes(plan.hot),
        plan.seconds
    );
    let read =
        |target: Target| Load::random(target, Pattern::RandomRead, 0, plan.hot, plan.seconds);
    scene.hold_promotion(true)?;
    let slow = measure::volume(
        scene,
        "slow tier alone",
        plan.hot,
        plan.volume,
        plan.seconds,
    )?;
    scene.hold_promotion(false)?;
    println!("  slow tier alone: {} IOPS", thousands(slow.figures.iops));
    let raw_direct = measure::other(
        scene,
        "raw file, io_uring",
        &read(Target::File(scene.raw_file())),
    )?;
    let rival = Rival::serve(&scene.raw_file(), Format::Raw, scene.scratch.path())?;
    let raw_before = measure::other(scene, "raw file, same client", &read(rival.target()))?;
    println!(
        "  the fast drive's raw file: {} IOPS by io_uring, {} by the same NBD client (qemu-nbd)",
        thousands(raw_direct.iops),
        thousands(raw_before.iops)
    );
    scene.cool()?;
    let map_before = scene.daemon.map(VOLUME, strip::CELLS)?;
    let mut runs = Vec::new();
    for number in 1..=RUNS {
        let name = format!("run {number}");
        let run = measure::volume(scene, &name, plan.hot, plan.volume, plan.seconds)?;
        println!("  {name}: {} IOPS", thousands(run.figures.iops));
        runs.push(run);
    }
    let raw_after = measure::other(scene, "raw file, same client", &read(rival.target()))?;
    let map_after = scene.daemon.map(VOLUME, strip::CELLS)?;
    Ok(Outcome {
        machine: machine::describe(),
        volume: plan.volume,
        hot: plan.hot,
        seconds: plan.seconds,
        depth: DEPTH,
        slow,
        raw_direct,
        raw_same: [raw_before, raw_after],
        runs,
        map_before,
        map_after,
    })
}

fn show(outcome: &Outcome, report: &Path) -> Result<()> {
    println!("\n3. What was measured\n\n{}", table::text(outcome));
    println!("  x slow: times the slow tier alone. % of raw: of the raw file by the same client");
    println!("  (the better of its two measurements).\n");
    println!(
        "  the volume before the first run:\n{}",
        strip::text(&outcome.map_before)
    );
    println!(
        "  and after the last:\n{}{}",
        strip::text(&outcome.map_after),
        strip::legend()
    );
    if let Some(parent) = report.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(report, report::html(outcome))
        .during(|| format!("cannot write {}", report.display()))?;
    println!("  with charts: {}", report.display());
    Ok(())
}

/// Creates the pool, measures, shows, and leaves the volume exported until an
/// interrupt (not without a terminal, or with `--exit`).
pub fn run(convect: &Path, with: &Demo) -> Result<()> {
    let begun = Instant::now();
    let plan = Plan::new(with);
    let mut scene = prepare(convect, with, &plan)?;
    let measured = measure_all(&scene, &plan);
    let outcome = scene.daemon.explain(measured)?;
    show(&outcome, &with.report)?;
    println!("  all of this took {} s", begun.elapsed().as_secs());
    if !with.exit && screen::is_terminal() && std::io::stdin().is_terminal() {
        attach::leave_open(&mut scene)?;
    }
    scene.daemon.stop()
}
