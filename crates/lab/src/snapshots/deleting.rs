//! Deleting many snapshots in random order under load: its cost, and that all space is freed.

use super::pipeline::{self, shuffle};
use super::run::{SETTLE, delete, is_settled, load, round_of_writes, settle, snapshot};
use crate::arguments::Snapshots;
use crate::chance::Chance;
use crate::content::{self, BLOCK};
use crate::failure::{Failure, Result, While};
use crate::fio::Load;
use crate::nbd::{Client, Request};
use crate::scene::{POOL, Scene, VOLUME};
use crate::screen::{self, Progress, thousands};
use crate::scrub_cost::median;
use std::time::{Duration, Instant};
use units::format_bytes;

/// Random writes between one snapshot and the next.
const BETWEEN: u64 = 20;
/// Some of them go beyond what is filled, so that the volume grows: so far, in bytes.
const BEYOND: u64 = 64 << 20;
/// Snapshots that are deleted with one command.
const BATCH: usize = 25;
/// How often it is looked how far it is; also in the rounds without, since looking costs too.
const LOOK: Duration = Duration::from_millis(250);
/// Where chance begins.
const SEED: u64 = 1;

/// Stored bytes.
#[derive(Clone, Copy)]
struct Space {
    /// By the whole pool.
    used: u64,
    /// By the volume as it is now.
    mapped: u64,
    /// By the volume and its snapshots.
    held: u64,
}

impl Space {
    fn of(scene: &Scene) -> Result<Self> {
        let volume = scene.daemon.volume(VOLUME)?;
        Ok(Self {
            used: scene.daemon.pool(POOL)?.used,
            mapped: volume.mapped,
            held: volume.held,
        })
    }

    /// Without snapshots a volume holds what is mapped, and the pool uses so much more than
    /// before as is mapped more: to the byte.
    fn compare(&self, before: &Self) -> Result<()> {
        let expected =
            i128::from(before.used) + i128::from(self.mapped) - i128::from(before.mapped);
        if i128::from(self.used) == expected && self.held == self.mapped {
            return Ok(());
        }
        Err(Failure::new(format!(
            "deleting all snapshots did not give back all space: the pool uses {} bytes, expected are \
             {expected} ({} before the first, and the volume grew from {} to {}); the volume and its \
             snapshots, of which there are none, hold {}: see `convect snapshot list` and `convect job list`",
            self.used, before.used, before.mapped, self.mapped, self.held
        )))
    }
}

/// Takes them, with some writes before each; returns their names.
fn take(scene: &Scene, with: &Snapshots) -> Result<Vec<String>> {
    let mut client = Client::connect(&scene.nbd_socket(), "disk")
        .during(|| "cannot connect to the volume".to_owned())?;
    let mut chance = Chance::new(SEED);
    let end = with.volume.min(with.used.saturating_add(BEYOND));
    let (within, beyond) = (with.used / BLOCK as u64, end / BLOCK as u64);
    let (mut names, mut progress) = (Vec::new(), Progress::new());
    for number in 0..with.deleted {
        let mut blocks = vec![chance.below(beyond)];
        blocks.extend((1..BETWEEN).map(|_| chance.below(within)));
        let writes = blocks.into_iter().map(|block| {
            let mut data = vec![0; BLOCK];
            content::write(block, number, &mut data);
            Request::Write {
                offset: block * BLOCK as u64,
                data,
                fua: false,
            }
        });
        pipeline::run(&mut client, writes, || ())?;
        let name = format!("deleted{number}");
        snapshot(scene, &name)?;
        names.push(name);
        if progress.is_due() {
            let share = f64::from(number) / f64::from(with.deleted);
            progress.draw(&format!("  taking {} {number}", screen::bar(share, 30)));
        }
    }
    Ok(names)
}

/// Periodic samples.
struct Watch {
    last: Instant,
    /// The most that the pool used.
    peak: u64,
}

impl Watch {
    /// Whether it is time; then what the pool uses was noted.
    fn look(&mut self, scene: &Scene) -> Result<bool> {
        if self.last.elapsed() < LOOK {
            return Ok(false);
        }
        self.peak = self.peak.max(scene.daemon.pool(POOL)?.used);
        self.last = Instant::now();
        Ok(true)
    }
}

fn rounds(
    scene: &Scene,
    name: &str,
    writes: &Load,
    count: u32,
    watch: &mut Watch,
) -> Result<Vec<f64>> {
    let mut p99 = Vec::new();
    for _ in 0..count.max(1) {
        let figures = load(scene, name, writes, || {
            if watch.look(scene)? {
                is_settled(scene)?;
            }
            Ok(())
        })?;
        p99.push(figures.p99_ns);
    }
    Ok(p99)
}

/// Deletes them in batches while the load runs, round after round until all is back; returns how
/// long that took, the p99 of the rounds, and for which part of them it went on.
fn delete_all(
    scene: &Scene,
    writes: &Load,
    names: &[String],
    watch: &mut Watch,
) -> Result<(Duration, Vec<f64>, f64)> {
    let (begun, mut batches) = (Instant::now(), names.chunks(BATCH));
    let (mut p99, mut took, mut busy, mut ran) = (Vec::new(), None, 0.0, 0.0);
    while took.is_none() {
        if begun.elapsed() > SETTLE {
            return Err(Failure::new(format!(
                "{} snapshots are not gone after {} s: `convect job list` says how far it is",
                names.len(),
                SETTLE.as_secs()
            )));
        }
        let round = Instant::now();
        let figures = load(scene, "while deleting", writes, || {
            match batches.next() {
                Some(batch) => delete(scene, batch)?,
                None if took.is_some() => {}
                None => {
                    if watch.look(scene)? && is_settled(scene)? {
                        took = Some(begun.elapsed());
                    }
                }
            }
            Ok(())
        })?;
        let whole = round.elapsed();
        let went = took.map_or(whole, |took: Duration| {
            (begun + took).saturating_duration_since(round)
        });
        // Of the last round only one in which it went on for half of the time says something.
        if p99.is_empty() || went >= whole / 2 {
            p99.push(figures.p99_ns);
            busy += went.as_secs_f64();
            ran += whole.as_secs_f64();
        }
    }
    Ok((took.unwrap_or_default(), p99, busy / ran))
}

/// Takes many, deletes them in random order under random writes, and compares the books.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    if with.deleted == 0 {
        return Ok(());
    }
    settle(scene)?;
    let first = Space::of(scene)?;
    let mut names = take(scene, with)?;
    shuffle(&mut names, &mut Chance::new(SEED));
    let writes = round_of_writes(scene, with);
    let mut watch = Watch {
        last: Instant::now(),
        peak: first.used,
    };
    load(scene, "warming up", &writes, || Ok(()))?;
    let before = rounds(scene, "before deleting", &writes, with.rounds, &mut watch)?;
    watch.peak = watch.peak.max(scene.daemon.pool(POOL)?.used);
    let (took, during, part) = delete_all(scene, &writes, &names, &mut watch)?;
    settle(scene)?;
    let last = Space::of(scene)?;
    last.compare(&first)?;
    let after = rounds(scene, "after deleting", &writes, with.rounds, &mut watch)?;
    let beside = median(&[&before[..], &after[..]].concat());
    let [before, during_p99, after] = [&before, &during, &after].map(|p99| median(p99));
    println!(
        "deleting {} snapshots in random order, {BATCH} a command, under {} random writes (no reads): \
         all gone after {:.1} s, {} given back",
        thousands(names.len() as f64),
        writes.depth,
        took.as_secs_f64(),
        format_bytes(watch.peak.saturating_sub(last.used))
    );
    println!(
        "  used then: {} bytes, as before the first and the {} bytes that the volume grew by: exact",
        thousands(last.used as f64),
        thousands(last.mapped as f64 - first.mapped as f64)
    );
    println!(
        "  p99 of the writes: {:.3} ms before, {:.3} ms during ({} rounds, for {:.0} % of which it went on), {:.3} ms after: {:.2} times \
         the median of before and after",
        before / 1e6,
        during_p99 / 1e6,
        during.len(),
        100.0 * part,
        after / 1e6,
        during_p99 / beside.max(1.0)
    );
    Ok(())
}
