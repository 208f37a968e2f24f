//! The order of the measurements, and their common parts.

use super::{cloning, deleting, many, reading, taking, writing};
use crate::arguments::{Part, Snapshots};
use crate::failure::{Failure, Result};
use crate::fio::{self, Figures, Load, Pattern, Target};
use crate::interrupt;
use crate::scene::{DISKS, POOL, Scene, Sizes, VOLUME};
use crate::screen::{self, Progress};
use api::v1::{JobState, SnapshotCreate};
use std::path::Path;
use std::time::{Duration, Instant};
use units::format_bytes;

/// Size of the raw file that a scene has beside the pool: what the machine's disk takes for a
/// write is timed there.
pub(super) const RAW: u64 = 1 << 20;
/// The volume without snapshots, beside the one that has them.
pub(super) const PLAIN: &str = "plain";
/// Queue depth: busy, without saturation.
pub(super) const DEPTH: u32 = 16;
/// How long space may take to come back; far beyond what is expected.
pub(super) const SETTLE: Duration = Duration::from_secs(900);

/// A load, with something done every now and then meanwhile.
pub(super) fn load(
    scene: &Scene,
    name: &str,
    load: &Load,
    mut meanwhile: impl FnMut() -> Result<()>,
) -> Result<Figures> {
    let (begun, mut progress) = (Instant::now(), Progress::new());
    let figures = fio::run(load, scene.scratch.path(), || {
        meanwhile()?;
        if progress.is_due() {
            let went = begun.elapsed().as_secs_f64();
            let bar = screen::bar(went / load.seconds.max(1) as f64, 30);
            progress.draw(&format!("  {name} {bar} {went:.0} s"));
        }
        Ok(())
    })?;
    progress.clear();
    Ok(figures)
}

pub(super) fn requests(target: Target, pattern: Pattern, size: u64, seconds: u64) -> Load {
    Load {
        depth: DEPTH,
        ..Load::random(target, pattern, 0, size, seconds)
    }
}

/// Random writes to the volume for as long as a round is.
pub(super) fn round_of_writes(scene: &Scene, with: &Snapshots) -> Load {
    requests(
        scene.target(),
        Pattern::RandomWrite,
        with.used,
        with.seconds,
    )
}

/// Takes one; returns its duration, from request to response.
pub(super) fn snapshot(scene: &Scene, name: &str) -> Result<Duration> {
    let begun = Instant::now();
    let volume = VOLUME.strip_prefix(POOL).unwrap_or(VOLUME);
    let wanted = SnapshotCreate {
        pool: POOL.to_owned(),
        volumes: vec![volume.trim_start_matches('/').to_owned()],
        name: name.to_owned(),
    };
    scene.daemon.post("/v1/snapshots", &wanted)?;
    Ok(begun.elapsed())
}

/// Deletes those snapshots; their space comes back in the background.
pub(super) fn delete(scene: &Scene, names: &[String]) -> Result<()> {
    let words: Vec<String> = names
        .iter()
        .map(|name| format!("{VOLUME}@{name}"))
        .collect();
    let mut all = vec!["snapshot", "delete", "--yes"];
    all.extend(words.iter().map(String::as_str));
    if !names.is_empty() {
        scene.daemon.run_long(&all, || Ok(()))?;
    }
    Ok(())
}

/// Whether nothing of deleted snapshots is left to be reclaimed.
pub(super) fn is_settled(scene: &Scene) -> Result<bool> {
    let jobs = scene.daemon.jobs()?.items;
    match jobs.iter().find(|job| job.kind == "reclaim") {
        Some(job) if job.state == JobState::Failed => Err(Failure::new(format!(
            "the space of deleted snapshots did not come back: {}",
            job.message
        ))),
        job => Ok(job.is_none_or(|job| job.state != JobState::Running)),
    }
}

/// Waits until the space of deleted snapshots is back.
pub(super) fn settle(scene: &Scene) -> Result<()> {
    if interrupt::wait_for(SETTLE, || is_settled(scene))? {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the space of deleted snapshots is not back after {} s: `convect job list` says how far it is",
        SETTLE.as_secs()
    )))
}

/// Exports a volume by NBD, by its own name.
pub(super) fn export(scene: &Scene, name: &str) -> Result<Target> {
    let socket = scene.scratch.join(&format!("{name}.sock"));
    let listen = format!("unix:{}", socket.display());
    let volume = format!("{POOL}/{name}");
    scene.daemon.run(&[
        "export", "create", name, &volume, "nbd", "--listen", &listen,
    ])?;
    Ok(Target::Nbd {
        export: name.to_owned(),
        socket,
    })
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Fills a volume and measures.
pub fn run(convect: &Path, with: &Snapshots) -> Result<()> {
    println!(
        "4 KiB random requests, {DEPTH} outstanding, on the first {} of a volume of {}; medians of {} rounds of {} s",
        format_bytes(with.used),
        format_bytes(with.volume),
        with.rounds,
        with.seconds
    );
    let mut scene = Scene::new(
        convect,
        "snapshots",
        Sizes {
            volume: with.volume,
            // The second volume, what the layers keep of what was overwritten, and an image with an overlay.
            used: 6 * with.used,
            fast: with.fast,
            raw: RAW,
            disks: DISKS,
            slow: with.volume * 3 / 2,
            ram: None,
        },
        &with.behind,
    )?;
    let measured = measure_all(&mut scene, with);
    scene.daemon.explain(measured)?;
    scene.daemon.stop()
}

type Measurement = fn(&Scene, &Snapshots) -> Result<()>;

fn measure_all(scene: &mut Scene, with: &Snapshots) -> Result<()> {
    scene.fill(with.used)?;
    let parts: [(Part, Measurement); 5] = [
        (Part::Taking, taking::measure),
        (Part::Writing, writing::measure),
        (Part::Deleting, deleting::measure),
        (Part::Reading, reading::measure),
        // The last one of a filled pool, since it cools that.
        (Part::Cloning, cloning::measure),
    ];
    let mut wanted = parts.into_iter().filter(|(part, _)| with.has(*part));
    wanted.try_for_each(|(_, measure)| measure(scene, with))?;
    match with.has(Part::Many) {
        true => many::measure(scene, with),
        false => Ok(()),
    }
}
