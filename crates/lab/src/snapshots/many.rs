//! Ten thousand snapshots in a pool, a thousand of each volume: the cost of one more, and of all of them.

use super::pipeline;
use super::run::export;
use super::taking::percentile;
use crate::arguments::Snapshots;
use crate::chance::Chance;
use crate::content::BLOCK;
use crate::failure::{Failure, Result, While};
use crate::fio::Target;
use crate::machine::resident_bytes;
use crate::nbd::{Client, Request};
use crate::scene::{POOL, Scene};
use crate::screen::{self, Progress, thousands};
use api::v1::SnapshotCreate;
use std::time::Instant;
use units::format_bytes;

/// Volumes that share them.
const VOLUMES: u32 = 10;
/// The part of each that is written to, in blocks: between two snapshots one block is.
const BLOCKS: u64 = 16 << 10;

/// A volume of its own, and a connection to it.
struct Written {
    name: String,
    client: Client,
}

impl Written {
    fn new(scene: &Scene, number: u32, with: &Snapshots) -> Result<Self> {
        let name = format!("many{number}");
        let (volume, size) = (format!("{POOL}/{name}"), with.volume.to_string());
        let create = ["volume", "create", &volume, "--size", &size];
        scene.daemon.run(&create)?;
        let target = export(scene, &name)?;
        Ok(Self {
            client: connect(&target)?,
            name,
        })
    }

    /// Writes a block, and takes a snapshot; returns how long that took, in milliseconds.
    fn take(&mut self, scene: &Scene, number: u32, chance: &mut Chance) -> Result<f64> {
        let write = Request::Write {
            offset: chance.below(BLOCKS) * BLOCK as u64,
            data: vec![number as u8 | 1; BLOCK],
            fua: false,
        };
        pipeline::run(&mut self.client, [write].into_iter(), || ())?;
        let wanted = SnapshotCreate {
            pool: POOL.to_owned(),
            volumes: vec![self.name.clone()],
            name: format!("s{number}"),
        };
        let begun = Instant::now();
        scene.daemon.post("/v1/snapshots", &wanted)?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }
}

fn connect(target: &Target) -> Result<Client> {
    let Target::Nbd { export, socket } = target else {
        return Err(Failure::new("only what is exported by NBD is written to"));
    };
    Client::connect(socket, export).during(|| format!("cannot connect to {export}"))
}

/// Median and p99 of the first and of the last of them, a twentieth each.
fn show(took: &[f64]) {
    let some = (took.len() / 20).max(1).min(took.len());
    let line = |what: &str, part: &[f64]| {
        let mut part = part.to_vec();
        let [half, most] = [0.5, 0.99].map(|share| percentile(&mut part, share));
        println!("  the {what} {some}: median {half:.1} ms, p99 {most:.1} ms each");
    };
    line("first", &took[..some]);
    line("last", &took[took.len() - some..]);
}

/// Takes them, lists them, and starts the daemon again.
///
/// # Errors
/// When one cannot be taken, some are not listed, or a person ends it.
pub fn measure(scene: &mut Scene, with: &Snapshots) -> Result<()> {
    let volumes: Result<Vec<_>> = (0..VOLUMES)
        .map(|number| Written::new(scene, number, with))
        .collect();
    let (mut volumes, mut chance) = (volumes?, Chance::new(1));
    let (mut took, mut progress) = (Vec::new(), Progress::new());
    let before = resident_bytes(scene.daemon.pid())?;
    let begun = Instant::now();
    for number in 0..with.many / VOLUMES {
        for volume in &mut volumes {
            took.push(volume.take(scene, number, &mut chance)?);
        }
        if progress.is_due() {
            let share = took.len() as f64 / f64::from(with.many.max(1));
            progress.draw(&format!(
                "  taking {} {}",
                screen::bar(share, 30),
                took.len()
            ));
        }
    }
    progress.clear();
    let count = thousands(took.len() as f64);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{count} snapshots of {VOLUMES} volumes, a block written before each: {seconds:.0} s");
    if took.is_empty() {
        return Ok(());
    }
    show(&took);
    let grown = resident_bytes(scene.daemon.pid())?.saturating_sub(before);
    println!("  the daemon's memory grew by {}", format_bytes(grown));
    let (begun, mut listed) = (Instant::now(), 0);
    for volume in &volumes {
        let volume = format!("{POOL}/{}", volume.name);
        listed += scene.daemon.snapshots(&volume)?.len();
    }
    let seconds = begun.elapsed().as_secs_f64();
    if listed != took.len() {
        return Err(Failure::new(format!("{listed} are listed of {count}")));
    }
    println!("  listing all, a command for each volume: {seconds:.2} s");
    drop(volumes);
    let begun = Instant::now();
    scene.daemon.stop()?;
    let stopped = begun.elapsed().as_secs_f64();
    scene.daemon.launch()?;
    let started = begun.elapsed().as_secs_f64() - stopped;
    println!("  stopping the daemon: {stopped:.2} s, starting it until it serves: {started:.2} s");
    Ok(())
}
