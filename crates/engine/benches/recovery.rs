//! How long a pool takes to open whose journals are as full as they get, by its capacity.
//!
//! `cargo bench -p convect-engine --bench recovery [-- TIB...]` makes pools of 1, 64 and 256 TiB (or
//! those named) of sparse files in the temporary folder, fills their journals to where hosts would
//! wait for a checkpoint, lets everything go as a crash does, and prints how long an import takes
//! until a volume can be used: with few chunks changed, and with as many as may be, each with nodes
//! of its own in the map. Drives are opened O_DIRECT, so nothing comes from the system's cache.

mod labels;
#[expect(dead_code, reason = "a benchmark uses its part")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use engine::bench::Filled;
use engine::harness::Harness;
use engine::{Engine, EngineConfig, LayoutSpec, Tier};
use format::Label;
use reactor::Reactor;
use std::time::Instant;
use support::{Folder, pool, vdrive, volume};
use units::DriveId;

const MIB_OF_TIB: u64 = 1 << 20;
/// Sparse files are not larger than this: common file systems end at 16 TiB.
const LARGEST_MIB: u64 = 8 * MIB_OF_TIB;
/// Size of the fast drive, where the metadata is.
const FAST_MIB: u64 = 256 << 10;
/// Changed pages of a shard: few, and as many as hosts may change before and during a checkpoint.
const CHANGED: [usize; 2] = [256, Filled::MOST_CHANGED];
const SHARDS: u16 = 2;
const TARGET_S: f64 = 5.0;

fn main() {
    println!(
        "{:>9} {:>9} {:>11} {:>11} {:>11} {:>10}",
        "capacity", "pages", "records", "unflushed", "chunks", "seconds"
    );
    let mut slowest: f64 = 0.0;
    let named: Vec<u64> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let all = if named.is_empty() {
        vec![1, 64, 256]
    } else {
        named
    };
    for tib in all {
        for changed in CHANGED {
            let (filled, seconds) = measure(tib, changed);
            println!(
                "{:>5} TiB {:>9} {:>11} {:>11} {:>11} {seconds:>10.2}",
                tib, filled.pages, filled.records, filled.unflushed, filled.chunks
            );
            slowest = slowest.max(seconds);
        }
    }
    println!("slowest: {slowest:.2} s; at most {TARGET_S} s is the target");
}

fn start() -> Engine {
    let config = EngineConfig {
        threads: usize::from(SHARDS),
        ..EngineConfig::default()
    };
    Engine::start(&config).expect("threads and io_uring")
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures what a person waits for"
)]
fn measure(tib: u64, changed: usize) -> (Filled, f64) {
    let folder = Folder::new();
    // The pool's own limit counts every drive.
    let slow_mib = tib * MIB_OF_TIB - 2 * FAST_MIB;
    let mut slow = Vec::new();
    let mut left = slow_mib;
    while left > 0 {
        let mib = left.min(LARGEST_MIB);
        slow.push(folder.drive(&format!("slow{}", slow.len()), mib));
        left -= mib;
    }
    let fast = [folder.drive("fast", FAST_MIB)];
    let vdrives = vec![
        vdrive(Tier::Fast, LayoutSpec::Concat, &fast),
        vdrive(Tier::Slow, LayoutSpec::Concat, &slow),
    ];
    let spec = pool("tank", SHARDS, vdrives);
    let engine = start();
    engine.pool_create(&spec).expect("a pool");
    engine
        .volume_create("tank", &volume("vm", slow_mib))
        .expect("a volume");
    engine.pool_export("tank").expect("it closes");
    drop(engine);
    let specs: Vec<String> = (0..slow.len())
        .map(|number| folder.existing(&format!("slow{number}")))
        .chain([folder.existing("fast")])
        .collect();
    let filled = fill(&specs, slow_mib, changed);
    let engine = start();
    let begun = Instant::now();
    engine
        .pool_import(&specs, "tank", false)
        .expect("it opens again");
    let device = engine
        .volume_open("tank", "vm", None)
        .expect("the volume opens");
    let seconds = begun.elapsed().as_secs_f64();
    drop(device);
    (filled, seconds)
}

fn fill(specs: &[String], chunks: u64, changed: usize) -> Filled {
    let reactor = Reactor::new(1).expect("io_uring");
    let handle = reactor.handle().clone();
    let specs = specs.to_vec();
    let filled = reactor.block_on(async move {
        let mut pool_drives = Vec::new();
        let mut newest: Option<Label> = None;
        for spec in &specs {
            let label = labels::newest_label(&handle, spec).await;
            let drive = drives::open(spec).expect("it exists");
            pool_drives.push((label.drive, drive));
            newest = Some(label);
        }
        let pool_drives: Vec<(DriveId, _)> = pool_drives;
        let label = newest.expect("a pool has drives");
        let memory = EngineConfig::default();
        let harness =
            Harness::open(&handle, label.pool, &label.config, &pool_drives, &memory).await;
        let harness = harness.expect("it opens");
        let volume = label.config.volumes[0].id;
        harness.fill_journals(volume, chunks as u32, changed).await
    });
    filled.expect("the loop runs").expect("the journals fill")
}
