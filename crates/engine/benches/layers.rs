//! Processor time of a read through snapshots and clones, beside the same read of a volume without.
//!
//! `cargo bench -p convect-engine --bench layers [-- MIB [SNAPSHOTS]]` makes a pool on a drive in memory, writes two
//! volumes of `MIB` (512) each, takes `SNAPSHOTS` (100) of one with 5,000 random writes between each and the next, makes clones of
//! clones of the other the same way, and reads random 4 KiB blocks of all of them in turns, one after the other
//! on one thread. Prints medians of rounds.

mod labels;
#[expect(dead_code, reason = "a benchmark uses its part")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use block::IoBuf;
use engine::harness::Harness;
use engine::{Engine, EngineConfig, LayoutSpec, Tier};
use format::LayerConfig;
use reactor::{Handle, Reactor};
use support::{BLOCK, Client, MIB, Random, pattern, pool, vdrive, volume};

const READS: usize = 50_000;
const ROUNDS: usize = 7;
/// Writes between a snapshot, or clone, and the next.
const BETWEEN: usize = 5000;
const LEVELS: usize = 8;
/// Pages of a group of space, at least.
const GROUP_PAGES: u64 = 4096;
const DRIVE: &str = "ram:layers";

/// What is read: what it is called, the number it is read by.
type Reader = (String, u32);

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<u64>().ok());
    let mib = numbers.next().unwrap_or(512);
    let snapshots = numbers.next().unwrap_or(100) as usize;
    make(mib, snapshots);
    let reactor = Reactor::new(1).expect("io_uring");
    let handle = reactor.handle().clone();
    let measured = reactor.block_on(async move { measure(&handle, mib, snapshots).await });
    measured.expect("the loop runs");
}

/// A pool with a volume that has nothing, one with snapshots, and clones of clones of a third.
fn make(mib: u64, snapshots: usize) {
    // Each layer takes a page of each chunk.
    let pages = (snapshots + 2 * LEVELS) as u64 * mib * 2;
    let engine = Engine::start(&EngineConfig {
        threads: 1,
        meta_groups: Some(pages / GROUP_PAGES + 32),
        ..EngineConfig::default()
    });
    let engine = engine.expect("threads and io_uring");
    let written = ((snapshots + LEVELS) * BETWEEN) as u64 * BLOCK / MIB;
    let size = 4 * mib + 2 * written + 4096 + pages * BLOCK / MIB;
    let drive = [format!("{DRIVE}?size={size}M")];
    let vdrives = vec![vdrive(Tier::Fast, LayoutSpec::Concat, &drive)];
    engine
        .pool_create(&pool("tank", 1, vdrives))
        .expect("a pool");
    let mut random = Random(1);
    for name in ["plain", "many", "level0"] {
        engine
            .volume_create("tank", &volume(name, mib))
            .expect("a volume");
        let client = Client::open(&engine, "tank", name);
        let content = pattern(1, MIB as usize);
        for at in 0..mib {
            client.write(at * MIB, &content).expect("it is written");
        }
    }
    let write = |name: &str, random: &mut Random| {
        let client = Client::open(&engine, "tank", name);
        let content = pattern(2, BLOCK as usize);
        for _ in 0..BETWEEN {
            let at = random.below(mib * MIB / BLOCK) * BLOCK;
            client.write(at, &content).expect("it is written");
        }
    };
    for number in 0..snapshots {
        let name = format!("s{number}");
        engine
            .snapshot_create("tank", &["many".to_owned()], &name, 0)
            .expect("a snapshot");
        write("many", &mut random);
    }
    for level in 0..LEVELS {
        let (from, to) = (format!("level{level}"), format!("level{}", level + 1));
        engine
            .snapshot_create("tank", std::slice::from_ref(&from), "s", 0)
            .expect("a snapshot");
        engine
            .snapshot_clone("tank", &from, "s", &to)
            .expect("a clone");
        write(&to, &mut random);
    }
    engine.pool_export("tank").expect("it closes");
}

async fn measure(handle: &Handle, mib: u64, snapshots: usize) {
    let label = labels::newest_label(handle, DRIVE).await;
    let drive = drives::open(DRIVE).expect("it exists");
    let pool_drives = [(label.drive, drive)];
    let memory = EngineConfig::default();
    let harness = Harness::open(handle, label.pool, &label.config, &pool_drives, &memory).await;
    let harness = harness.expect("it opens");
    let id = |name: &str| {
        let mut volumes = label.config.volumes.iter();
        volumes
            .find(|volume| volume.name == name)
            .expect("made above")
            .id
    };
    let last = format!("level{LEVELS}");
    let readers: Vec<Reader> = vec![
        ("a volume without".to_owned(), id("plain")),
        (format!("{snapshots} snapshots"), id("many")),
        (format!("{LEVELS} levels of clones"), id(&last)),
    ];
    let layers: &[LayerConfig] = &label.config.layers;
    println!(
        "{} layers; {READS} random 4 KiB reads of {mib} MiB a round, ns each",
        layers.len()
    );
    let mut buf = IoBuf::zeroed(BLOCK as usize);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); readers.len()];
    for round in 0..=ROUNDS {
        harness.make_summaries();
        for ((_, reader), times) in readers.iter().zip(&mut times) {
            let blocks = mib * MIB / BLOCK;
            let offsets: Vec<u64> = (0..READS)
                .map(|_| handle.random() % blocks * BLOCK)
                .collect();
            let began = handle.now_ns();
            for offset in offsets {
                harness
                    .read(*reader, offset, &mut buf)
                    .await
                    .expect("it is read");
            }
            // The first round brings pages in, of which some give way to summaries.
            if round > 0 {
                times.push((handle.now_ns() - began) as f64 / READS as f64);
            }
        }
    }
    let median = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let plain = median(&times[0]);
    for ((name, _), times) in readers.iter().zip(&times) {
        let median = median(times);
        println!("{name:<24} {median:>8.0} {:>7.2} times", median / plain);
    }
}
