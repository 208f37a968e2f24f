//! What snapshots and clones cost hosts.

use crate::arguments::Snapshots;
use crate::failure::{Result, While};
use crate::fio::{self, Figures, Load, Pattern, Target};
use crate::scene::{POOL, Scene, Sizes, VOLUME};
use crate::screen::{self, Progress, thousands};
use crate::scrub_cost::median;
use api::v1::SnapshotCreate;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use units::format_bytes;

/// Size of the raw file that a scene has beside the pool; nothing is measured on it here.
const RAW: u64 = 1 << 20;
/// Requests outstanding: busy, and not so many that they only wait for each other.
const DEPTH: u32 = 16;
/// Requests between one snapshot that is read through and the next.
const BETWEEN: u64 = 5000;
/// Time from one snapshot to the next under load.
const EVERY: Duration = Duration::from_millis(250);

/// A load, with something done every now and then meanwhile.
fn load(
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

fn requests(target: Target, pattern: Pattern, size: u64, seconds: u64) -> Load {
    Load {
        depth: DEPTH,
        ..Load::random(target, pattern, 0, size, seconds)
    }
}

/// Takes one; answers how long it took, from the request to the answer.
fn snapshot(scene: &Scene, name: &str) -> Result<Duration> {
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

/// Deletes those snapshots, and waits until their space is back.
fn delete(scene: &Scene, names: &[String]) -> Result<()> {
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

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Snapshots under a load of writes, beside the same load without.
fn taking(scene: &Scene, with: &Snapshots) -> Result<()> {
    let writes = requests(
        scene.target(),
        Pattern::RandomWrite,
        with.used,
        with.seconds,
    );
    load(scene, "warming up", &writes, || Ok(()))?;
    let (mut alone, mut beside, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..with.rounds {
        alone.push(load(scene, "without", &writes, || Ok(()))?.p99_ns);
        let (mut names, mut last) = (Vec::new(), Instant::now());
        let figures = load(scene, "with snapshots", &writes, || {
            if last.elapsed() < EVERY {
                return Ok(());
            }
            last = Instant::now();
            let name = format!("round{round}-{}", names.len());
            took.push(millis(snapshot(scene, &name)?));
            names.push(name);
            Ok(())
        })?;
        beside.push(figures.p99_ns);
        delete(scene, &names)?;
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied();
    let (alone, beside) = (median(&alone), median(&beside));
    println!(
        "taking one under {} random writes, {} times: median {:.1} ms, p99 {:.1} ms",
        thousands(f64::from(DEPTH)),
        took.len(),
        at(0.5).unwrap_or(f64::NAN),
        at(0.99).unwrap_or(f64::NAN),
    );
    println!(
        "  p99 of the writes: {:.3} ms without, {:.3} ms with one every {} ms: {:.2} times",
        alone / 1e6,
        beside / 1e6,
        EVERY.as_millis(),
        beside / alone.max(1.0)
    );
    Ok(())
}

/// Bytes that the daemon had written to its drives.
fn written(scene: &Scene) -> Result<f64> {
    let path = format!("/proc/{}/io", scene.daemon.pid());
    let text = fs::read_to_string(&path).during(|| format!("cannot read {path}"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(f64::NAN))
}

/// The writes right after a snapshot, beside those right before it.
fn first_writes(scene: &Scene, with: &Snapshots) -> Result<()> {
    let writes = requests(
        scene.target(),
        Pattern::RandomWrite,
        with.used,
        with.seconds,
    );
    let mut iops = [Vec::new(), Vec::new()];
    let mut bytes = [Vec::new(), Vec::new()];
    let mut names = Vec::new();
    for round in 0..with.rounds {
        for (after, name) in ["before", "after"].iter().enumerate() {
            if after == 1 {
                names.push(format!("first{round}"));
                snapshot(scene, &format!("first{round}"))?;
            }
            let began = written(scene)?;
            let figures = load(scene, name, &writes, || Ok(()))?;
            let count = figures.iops * figures.took;
            iops[after].push(figures.iops);
            bytes[after].push((written(scene)? - began) / count.max(1.0));
        }
        delete(scene, &std::mem::take(&mut names))?;
    }
    let [before, after] = iops.map(|iops| median(&iops));
    let [bytes_before, bytes_after] = bytes.map(|bytes| median(&bytes));
    println!(
        "writes after one: {} IOPS, {} before: {:.0} %; bytes written to drives a request: {:.0}, {:.0} before: {:.2} times",
        thousands(after),
        thousands(before),
        100.0 * after / before.max(1.0),
        bytes_after,
        bytes_before,
        bytes_after / bytes_before.max(1.0)
    );
    Ok(())
}

/// Reads of what many layers have, beside the same writes without a snapshot in between.
fn reading(scene: &Scene, with: &Snapshots) -> Result<()> {
    let reads = |target| requests(target, Pattern::RandomRead, with.used, with.seconds);
    let write = |target| Load {
        requests: Some(BETWEEN),
        ..requests(target, Pattern::RandomWrite, with.used, with.seconds)
    };
    let mut figures = Vec::new();
    let rounds = |figures: &mut Vec<f64>, target: Target, name: &str| -> Result<()> {
        let mut iops = Vec::new();
        for _ in 0..with.rounds.max(1) {
            iops.push(load(scene, name, &reads(target.clone()), || Ok(()))?.iops);
        }
        figures.push(median(&iops));
        Ok(())
    };
    for _ in 0..with.chain.min(10) {
        load(scene, "writing", &write(scene.target()), || Ok(()))?;
    }
    rounds(&mut figures, scene.target(), "reading, no snapshots")?;
    for number in 0..with.chain {
        snapshot(scene, &format!("chain{number}"))?;
        load(
            scene,
            "writing between snapshots",
            &write(scene.target()),
            || Ok(()),
        )?;
    }
    rounds(&mut figures, scene.target(), "reading through snapshots")?;
    let mut of = VOLUME.to_owned();
    for level in 0..with.levels {
        let (snapshot, clone) = (format!("{of}@level"), format!("level{level}"));
        scene.daemon.run(&["snapshot", "create", &snapshot])?;
        scene
            .daemon
            .run(&["snapshot", "clone", &snapshot, &clone])?;
        of = format!("{POOL}/{clone}");
        let socket = scene.scratch.join(&format!("{clone}.sock"));
        let listen = format!("unix:{}", socket.display());
        scene
            .daemon
            .run(&["export", "create", &clone, &of, "nbd", "--listen", &listen])?;
        let target = Target::Nbd {
            export: clone.clone(),
            socket,
        };
        load(scene, "writing to a clone", &write(target.clone()), || {
            Ok(())
        })?;
        if level + 1 == with.levels {
            rounds(&mut figures, target, "reading through clones")?;
        }
    }
    let base = figures[0].max(1.0);
    println!("reads without snapshots: {} IOPS", thousands(figures[0]));
    for (iops, what) in figures[1..].iter().zip([
        format!("through {} snapshots", with.chain),
        format!("and {} levels of clones", with.levels),
    ]) {
        println!(
            "  {what}: {} IOPS, {:.0} %",
            thousands(*iops),
            100.0 * iops / base
        );
    }
    Ok(())
}

/// Many clones of one snapshot, a command each.
fn cloning(scene: &Scene, with: &Snapshots) -> Result<()> {
    snapshot(scene, "master")?;
    let (begun, mut progress) = (Instant::now(), Progress::new());
    for number in 0..with.clones {
        let name = format!("desktop{number}");
        let master = format!("{VOLUME}@master");
        scene.daemon.run(&["snapshot", "clone", &master, &name])?;
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
            used: with.used,
            fast: with.fast,
            raw: RAW,
        },
    )?;
    let measured = scene
        .fill(with.used)
        .and_then(|()| taking(&scene, with))
        .and_then(|()| first_writes(&scene, with))
        .and_then(|()| cloning(&scene, with))
        .and_then(|()| reading(&scene, with));
    scene.daemon.explain(measured)?;
    scene.daemon.stop()
}
