//! Blocks that both tiers have: read from the one that answers sooner, and right whichever copy is wrong.

use crate::support::{
    BLOCK, Client, Folder, Random, audit_at_rest, engine, pattern, pool, spoil, spoil_all, tiered,
    vdrive, volume, wait_status,
};
use engine::{Engine, LayoutSpec, Tier};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BLOCKS: u64 = 128;
/// Blocks of a read.
const TOGETHER: u64 = 8;
const READERS: u64 = 16;
/// Between two looks, and how many of them: far beyond what is expected.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: usize = 600;

fn content(block: u64) -> Vec<u8> {
    pattern(block + 1, BLOCK as usize)
}

fn contents(first: u64, count: u64) -> Vec<u8> {
    (first..first + count).flat_map(content).collect()
}

/// A volume of which both tiers have everything.
fn settled(engine: &Engine, spec: &engine::PoolSpec) -> Client {
    engine.pool_create(spec).unwrap();
    engine.volume_create("p", &volume("v", 16)).unwrap();
    let client = Client::open(engine, "p", "v");
    client.write(0, &contents(0, BLOCKS)).unwrap();
    wait_status(engine, "p", |status| {
        status.fast_shadow == BLOCKS * BLOCK && status.fast_dirty == 0
    });
    client
}

/// Reads here and there, many at a time, and holds them against what was written, until it is `enough`.
fn read_until(client: &Client, enough: impl Fn() -> bool) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = (0..READERS).map(|reader| {
            let (client, done) = (client.clone(), &done);
            scope.spawn(move || {
                let mut random = Random(reader + 1);
                while !done.load(Ordering::Relaxed) {
                    let first = random.below(BLOCKS / TOGETHER) * TOGETHER;
                    let bytes = (TOGETHER * BLOCK) as usize;
                    let read = client.read(first * BLOCK, bytes).unwrap();
                    assert!(read == contents(first, TOGETHER), "block {first} on");
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        let all_read = || readers.iter().all(|reader| !reader.is_finished());
        let mut looks = 0..LOOKS;
        while all_read() && !enough() && looks.next().is_some() {
            std::thread::park_timeout(LOOK);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(enough(), "it did not come so");
}

/// Blocks that the slow drive has right.
fn right_at_home(folder: &Folder) -> usize {
    let wanted: std::collections::BTreeSet<Vec<u8>> = (0..BLOCKS).map(content).collect();
    let blocks = folder.written_blocks("slow");
    let right = blocks.iter().filter(|(_, block)| wanted.contains(block));
    right.count()
}

#[test]
fn a_loaded_fast_tier_is_helped_and_what_is_wrong_at_home_is_written_anew() {
    let folder = Folder::new();
    let engine = engine(1);
    let fast = format!("model:ssd-sata,iops=300:{}", folder.drive("fast", 96));
    let tiers = [(Tier::Fast, fast), (Tier::Slow, folder.drive("slow", 96))];
    let vdrives = tiers.map(|(tier, drive)| vdrive(tier, LayoutSpec::Concat, &[drive]));
    let client = settled(&engine, &pool("p", 1, vdrives.to_vec()));
    let slow_reads = || engine.pool_counters("p").unwrap().blocks_slow;
    read_until(&client, || slow_reads() > 100);
    let all: Vec<_> = (0..BLOCKS).map(content).collect();
    assert_eq!(spoil_all(&folder, "slow", &all), all.len());
    assert_eq!(right_at_home(&folder), 0);
    read_until(&client, || right_at_home(&folder) > 0);
    wait_status(&engine, "p", |status| status.fast_dirty == 0);
    audit_at_rest(&engine, "p");
    engine.shutdown();
}

#[test]
fn blocks_read_together_of_which_each_tier_has_another_one_wrong_are_right() {
    let folder = Folder::new();
    let engine = engine(1);
    let client = settled(&engine, &tiered(&folder, "p", 1, 96, 96));
    assert_eq!(spoil(&folder, "slow", &content(3)), 1);
    assert_eq!(spoil(&folder, "fast", &content(5)), 1);
    let read = client.read(0, (TOGETHER * BLOCK) as usize).unwrap();
    assert!(read == contents(0, TOGETHER));
    let status = wait_status(&engine, "p", |status| status.fast_dirty == 0);
    assert!(status.fast_shadow < BLOCKS * BLOCK, "the bad copy is gone");
    assert_eq!(right_at_home(&folder), BLOCKS as usize);
    engine.shutdown();
}
