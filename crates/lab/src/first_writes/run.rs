//! The phases in their order.

use super::phase::{Phase, Tier, is_full, write};
use super::table;
use crate::arguments::FirstWrites;
use crate::failure::Result;
use crate::fio::{self, DEPTH, Figures, Pattern, Target};
use crate::load::{self, Load, Series};
use crate::machine;
use crate::rival::{Format, Rival};
use crate::scene::{Scene, Sizes};
use crate::screen::thousands;
use std::path::Path;
use units::format_bytes;

/// Size of the raw file in bytes.
const RAW: u64 = 2 << 30;
/// Seconds for which it is written, each time.
const RAW_SECONDS: u64 = 8;
/// Everything that was measured.
struct Outcome {
    phases: Vec<Phase>,
    raw: [Series; 2],
    direct: Figures,
}

fn write_raw(scene: &Scene) -> Result<Series> {
    let rival = Rival::serve(&scene.raw_file(), Format::Raw, scene.scratch.path())?;
    let load = Load::all_over(rival.target(), true, 0..RAW, RAW_SECONDS);
    load::run(&load, |_, _| Ok(true))
}

fn measure(scene: &Scene, with: &FirstWrites) -> Result<Outcome> {
    scene.fill(with.volume)?;
    scene.cool()?;
    let raw_file = Target::File(scene.raw_file());
    let direct = fio::Load::random(raw_file, Pattern::RandomWrite, 0, RAW, RAW_SECONDS);
    let direct = fio::run(&direct, scene.scratch.path(), || Ok(()))?;
    let before = write_raw(scene)?;
    let middle = with.volume / 2;
    let never = |_: &[Tier]| false;
    let mut phases = vec![write(scene, "fresh", 0..middle, with.seconds, never)?];
    // What was written to the first half has settled and is demoted, while the other half is as cold as that was.
    let second_half = middle..with.volume;
    phases.push(write(scene, "draining", second_half, with.seconds, never)?);
    let filling = write(scene, "filling", 0..with.volume, with.filling, is_full)?;
    if !is_full(&filling.tier) {
        println!(
            "  the fast tier is not full after {} s: take a smaller --fast or a longer --filling",
            with.filling
        );
    }
    phases.push(filling);
    phases.push(write(
        scene,
        "exhausted",
        0..with.volume,
        with.exhausted,
        never,
    )?);
    let raw = [before, write_raw(scene)?];
    Ok(Outcome {
        phases,
        raw,
        direct,
    })
}

/// Fills a volume, cools it, and writes to it until its fast tier is full and on.
pub fn run(convect: &Path, with: &FirstWrites) -> Result<()> {
    println!(
        "4 KiB random writes, {DEPTH} outstanding, to a cold volume of {}; a fast file of {}, modelled 7,200 rpm \
         disks: {}\n  {}",
        format_bytes(with.volume),
        format_bytes(with.fast),
        with.disks,
        machine::describe()
    );
    let sizes = Sizes {
        disks: with.disks,
        ..Sizes::whole(with.volume, with.fast, RAW)
    };
    let mut scene = Scene::new(convect, "writes", sizes, &with.behind)?;
    let measured = measure(&scene, with);
    let outcome = scene.daemon.explain(measured)?;
    println!("\n{}", table::seconds(&outcome.phases));
    println!(
        "{}",
        table::summary(&outcome.phases, &outcome.raw, with.disks)
    );
    println!(
        "  raw: the file by the same client, the better of its two measurements; by io_uring {} IOPS, p99 {:.3} ms",
        thousands(outcome.direct.iops),
        outcome.direct.p99_ns / 1e6
    );
    println!(
        "  stall: the longest time in which nothing was answered; max: the longest that one request took"
    );
    scene.daemon.stop()
}
