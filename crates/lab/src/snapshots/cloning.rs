//! Many clones of one snapshot, and many of them booting concurrently.

use super::pipeline::{self, shuffle};
use super::reading;
use super::run::{PLAIN, export};
use crate::arguments::{Part, Snapshots};
use crate::chance::Chance;
use crate::content::BLOCK;
use crate::demo::Shares;
use crate::failure::{Failure, Result, While};
use crate::fio::Target;
use crate::interrupt;
use crate::nbd::{Client, Request};
use crate::scene::{POOL, Scene};
use crate::screen::{self, Progress, thousands};
use api::v1::Tier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use units::format_bytes;

/// Clones that boot.
const BOOTING: u32 = 100;
/// Bytes that each of them reads, from the start.
const SHARED: u64 = 64 << 20;
/// Concurrently reading clones.
const THREADS: usize = 8;

fn name(number: u32) -> String {
    format!("desktop{number}")
}

fn clone(scene: &Scene, with: &Snapshots) -> Result<()> {
    // Of the volume without other snapshots: what is measured is the clones, not a chain.
    let master = format!("{POOL}/{PLAIN}@master");
    scene.daemon.run(&["snapshot", "create", &master])?;
    let (begun, mut progress) = (Instant::now(), Progress::new());
    for number in 0..with.clones {
        scene
            .daemon
            .run(&["snapshot", "clone", &master, &name(number)])?;
        if progress.is_due() {
            let share = f64::from(number) / f64::from(with.clones);
            progress.draw(&format!("  cloning {} {number}", screen::bar(share, 30)));
        }
    }
    progress.clear();
    println!(
        "{} clones, a command each: {:.1} s",
        thousands(f64::from(with.clones)),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Bytes requested from the drives of the slow tier.
fn slow_bytes(scene: &Scene) -> Result<u64> {
    let pool = scene.daemon.pool(POOL)?;
    let slow = pool
        .vdrives
        .iter()
        .filter(|vdrive| vdrive.tier == Tier::Slow);
    Ok(slow
        .flat_map(|vdrive| &vdrive.drives)
        .map(|drive| drive.read_bytes)
        .sum())
}

/// One clone reads every block of the first `shared` bytes once, in an order of its own.
fn boot(target: &Target, seed: u64, shared: u64, done: &AtomicU64) -> Result<()> {
    let Target::Nbd { export, socket } = target else {
        return Err(Failure::new("only what is exported by NBD can boot"));
    };
    let mut client =
        Client::connect(socket, export).during(|| format!("cannot connect to {export}"))?;
    let mut blocks: Vec<u64> = (0..shared / BLOCK as u64).collect();
    shuffle(&mut blocks, &mut Chance::new(seed));
    let reads = blocks.into_iter().map(|block| Request::Read {
        offset: block * BLOCK as u64,
        length: BLOCK as u32,
    });
    pipeline::run(&mut client, reads, || {
        done.fetch_add(BLOCK as u64, Ordering::Relaxed);
    })
}

/// Boots those clones, some at a time; returns the bytes that were read.
fn boot_all(targets: &[Target], shared: u64) -> Result<u64> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let all = targets.len() as u64 * shared;
    let one = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            match targets.get(number) {
                Some(target) => boot(target, number as u64, shared, &done)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        let mut progress = Progress::new();
        while threads.iter().any(|thread| !thread.is_finished()) {
            // An error after an interrupt: the threads check for that too.
            interrupt::pause(Duration::from_millis(50))?;
            if progress.is_due() {
                let read = done.load(Ordering::Relaxed);
                let bar = screen::bar(read as f64 / all as f64, 30);
                progress.draw(&format!("  booting {bar} {}", format_bytes(read)));
            }
        }
        progress.clear();
        threads.into_iter().try_for_each(|thread| {
            let died = |_| Failure::new("a thread that read a clone panicked");
            thread.join().map_err(died)?
        })
    })?;
    Ok(done.into_inner())
}

fn booting(scene: &Scene, with: &Snapshots) -> Result<()> {
    let shared = SHARED.min(with.used);
    let count = with.clones.min(BOOTING);
    let begun = Instant::now();
    let mut targets = Vec::new();
    for number in 0..count {
        targets.push(export(scene, &name(number))?);
    }
    println!(
        "  {count} of them exported by NBD, a command each: {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    scene.cool()?;
    let (before, slow_before) = (scene.daemon.counters(POOL)?, slow_bytes(scene)?);
    let begun = Instant::now();
    let read = boot_all(&targets, shared)?;
    let took = begun.elapsed();
    let (after, slow_after) = (scene.daemon.counters(POOL)?, slow_bytes(scene)?);
    let asked = slow_after.saturating_sub(slow_before);
    let blocks = after.blocks_slow.saturating_sub(before.blocks_slow) * BLOCK as u64;
    println!(
        "  booting {count} of them, the same {} each, {THREADS} at a time: {} read in {:.1} s",
        format_bytes(shared),
        format_bytes(read),
        took.as_secs_f64()
    );
    // A read may bring its neighbours along, which then count as served from RAM: what the drives
    // were requested is what the slow tier really gave.
    println!(
        "  read from the slow tier's drives: {}, {:.2} times what they share; requests served from it \
         at once: {}, {:.2} times",
        format_bytes(asked),
        asked as f64 / shared.max(1) as f64,
        format_bytes(blocks),
        blocks as f64 / shared.max(1) as f64
    );
    if let Some(shares) = Shares::between(&before, &after) {
        println!("  {}", shares.text());
    }
    // What is measured next has no more exports than it names.
    for number in 0..count {
        let export = name(number);
        scene.daemon.run(&["export", "delete", "--yes", &export])?;
    }
    Ok(())
}

/// Makes the clones, a command each, and boots some of them from the cold.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    if !with.has(Part::Reading) {
        reading::plain(scene, with)?;
    }
    clone(scene, with)?;
    match with.clones {
        0 => Ok(()),
        _ => booting(scene, with),
    }
}
