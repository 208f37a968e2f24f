//! 4 KiB random writes to a cold volume, second by second, beside the fast drive's raw file.

use crate::arguments::FreshWrites;
use crate::failure::{Failure, Result};
use crate::fio::{self, DEPTH, Figures, Load, Pattern, Target};
use crate::rival::{Format, Rival};
use crate::scene::{Scene, Sizes};
use crate::screen::{self, Progress, thousands};
use std::path::Path;
use std::time::Instant;
use units::format_bytes;

/// Size of the raw file in bytes.
const RAW: u64 = 2 << 30;

fn measure(scene: &Scene, name: &str, target: Target, size: u64, seconds: u64) -> Result<Figures> {
    let load = Load::random(target, Pattern::RandomWrite, 0, size, seconds);
    let begun = Instant::now();
    let mut progress = Progress::new();
    let figures = fio::run(&load, scene.scratch.path(), || {
        if progress.is_due() {
            let went = begun.elapsed().as_secs_f64();
            let bar = screen::bar(went / seconds as f64, 30);
            progress.draw(&format!("  {name} {bar} {went:.0} s"));
        }
        Ok(())
    })?;
    progress.clear();
    match figures.seconds.is_empty() {
        true => Err(Failure::new("fio wrote no log of its seconds")),
        false => Ok(figures),
    }
}

fn show(volume: &Figures, same: &Figures, direct: &Figures) {
    let part = |iops: f64, raw: &Figures| format!("{:.0}", 100.0 * iops / raw.iops.max(1.0));
    let mut rows: Vec<Vec<String>> = volume
        .seconds
        .iter()
        .enumerate()
        .map(|(index, iops)| {
            let second = (index + 1).to_string();
            vec![
                second,
                thousands(*iops),
                part(*iops, same),
                part(*iops, direct),
            ]
        })
        .collect();
    let mean = vec!["mean".to_owned(), thousands(volume.iops)];
    rows.push(
        [
            mean,
            vec![part(volume.iops, same), part(volume.iops, direct)],
        ]
        .concat(),
    );
    let head = [
        "second",
        "IOPS",
        "% of raw, same client",
        "% of raw, io_uring",
    ];
    println!("{}", screen::table(&head, &rows));
    println!(
        "  raw file, same client: {} IOPS; by io_uring: {} IOPS",
        thousands(same.iops),
        thousands(direct.iops)
    );
    let after = volume.took - volume.seconds.len() as f64;
    if after > 1.0 {
        println!("  the last request was answered {after:.0} s after the last of these seconds");
    }
    let worst = volume.seconds.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "  first second: {} % of raw by the same client, {} % by io_uring; worst second: {} %, {} %",
        part(volume.seconds[0], same),
        part(volume.seconds[0], direct),
        part(worst, same),
        part(worst, direct)
    );
}

/// The raw file by io_uring, by the same client, and the volume.
fn measure_all(scene: &Scene, with: &FreshWrites) -> Result<[Figures; 3]> {
    scene.fill(with.volume)?;
    scene.cool()?;
    let seconds = with.seconds;
    let raw_file = Target::File(scene.raw_file());
    let direct = measure(scene, "raw file, io_uring", raw_file, RAW, seconds)?;
    let rival = Rival::serve(&scene.raw_file(), Format::Raw, scene.scratch.path())?;
    let same = measure(scene, "raw file, same client", rival.target(), RAW, seconds)?;
    let volume = measure(scene, "cold volume", scene.target(), with.volume, seconds)?;
    Ok([direct, same, volume])
}

/// Fills a volume, cools it, and writes to it.
pub fn run(convect: &Path, with: &FreshWrites) -> Result<()> {
    println!(
        "4 KiB random writes, {DEPTH} outstanding, to a cold volume of {} on modelled disks",
        format_bytes(with.volume)
    );
    let mut scene = Scene::new(convect, "fresh", Sizes::whole(with.volume, with.fast, RAW))?;
    let measured = measure_all(&scene, with);
    let [direct, same, volume] = scene.daemon.explain(measured)?;
    show(&volume, &same, &direct);
    scene.daemon.stop()
}
