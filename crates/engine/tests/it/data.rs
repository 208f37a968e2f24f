//! What is written is read, on every kind of pool, with one shard and with two, after a clean end
//! and after a hard one.

use crate::support::{
    self, BLOCK, Client, Folder, MIB, Random, drives_of, engine, pattern, pool, tiered, vdrive,
    volume,
};
use engine::{Engine, ErrorCode, LayoutSpec, PoolSpec, Tier};

/// A volume and what it must hold, in 512-byte sectors.
struct Oracle {
    client: Client,
    size: u64,
    /// The stamp that each was written with; 0 is zeroes.
    sectors: Vec<u64>,
    random: Random,
    stamp: u64,
}

impl Oracle {
    fn new(client: Client, size: u64, seed: u64) -> Self {
        Self {
            client,
            size,
            sectors: vec![0; (size / 512) as usize],
            random: Random(seed | 1),
            stamp: 0,
        }
    }

    /// What so many sectors from this one on must hold.
    fn content(&self, first: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; count as usize * 512];
        for (sector, bytes) in (first..).zip(bytes.chunks_mut(512)) {
            match self.sectors[sector as usize] {
                0 => {}
                stamp => bytes.copy_from_slice(&pattern(sector << 20 | stamp, 512)),
            }
        }
        bytes
    }

    fn range(&mut self) -> (u64, u64) {
        let count = match self.random.below(4) {
            0 => 1 + self.random.below(8),
            1 => 8,
            2 => 8 * (1 + self.random.below(32)),
            _ => 1 + self.random.below(700),
        };
        let first = self.random.below(self.size / 512 - count);
        if self.random.below(2) == 0 {
            (first / 8 * 8, count)
        } else {
            (first, count)
        }
    }

    fn step(&mut self) {
        let (first, count) = self.range();
        match self.random.below(10) {
            0..5 => {
                self.stamp += 1;
                let stamp = self.stamp;
                self.sectors[first as usize..(first + count) as usize].fill(stamp);
                let bytes = self.content(first, count);
                self.client.write(first * 512, &bytes).unwrap();
            }
            5 => {
                self.client.discard(first * 512, count * 512).unwrap();
                self.sectors[first as usize..(first + count) as usize].fill(0);
            }
            6 => self.client.flush().unwrap(),
            _ => self.check(first, count),
        }
    }

    fn check(&self, first: u64, count: u64) {
        let read = self.client.read(first * 512, count as usize * 512).unwrap();
        let expected = self.content(first, count);
        for (sector, (read, expected)) in (first..).zip(read.chunks(512).zip(expected.chunks(512)))
        {
            assert!(read == expected, "sector {sector} is wrong");
        }
    }

    fn check_all(&self) {
        let per_read = MIB / 512;
        for first in (0..self.size / 512).step_by(per_read as usize) {
            self.check(first, per_read.min(self.size / 512 - first));
        }
    }
}

fn kinds(folder: &Folder, shards: u16) -> Vec<PoolSpec> {
    let fast = |name: &str| folder.drive(name, 128);
    let slow = |name: &str| folder.drive(name, 256);
    let stripe = LayoutSpec::Stripe { chunk: 65536 };
    vec![
        pool(
            "flash",
            shards,
            vec![vdrive(
                Tier::Fast,
                LayoutSpec::Concat,
                &[fast("a"), fast("b")],
            )],
        ),
        pool(
            "disk",
            shards,
            vec![vdrive(
                Tier::Slow,
                stripe,
                &[slow("c"), slow("d"), slow("e")],
            )],
        ),
        pool(
            "tiers",
            shards,
            vec![
                vdrive(Tier::Fast, LayoutSpec::Mirror, &[fast("f"), fast("g")]),
                vdrive(Tier::Slow, stripe, &[slow("h"), slow("i")]),
            ],
        ),
    ]
}

fn exercise(engine: Engine, spec: &PoolSpec, end: impl Fn(Engine) -> Engine) {
    engine.pool_create(spec).unwrap();
    engine.volume_create(&spec.name, &volume("v", 300)).unwrap();
    let mut oracle = Oracle::new(Client::open(&engine, &spec.name, "v"), 300 * MIB, 42);
    let mut engine = engine;
    for round in 0..3 {
        (0..support::rounds(400)).for_each(|_| oracle.step());
        if round == 1 {
            engine.pool_cool(&spec.name).unwrap();
            (0..support::rounds(200)).for_each(|_| oracle.step());
        }
        oracle.client.flush().unwrap();
        engine = end(engine);
        if engine.pool_list().unwrap().is_empty() {
            engine
                .pool_import(&drives_of(spec), &spec.name, false)
                .unwrap();
        }
        oracle.client = Client::open(&engine, &spec.name, "v");
        oracle.check_all();
    }
    let status = engine.pool_status(&spec.name).unwrap();
    let blocks = oracle.sectors.chunks(8);
    let stored = blocks.filter(|block| block.iter().any(|stamp| *stamp != 0));
    assert!(status.used >= stored.count() as u64 * BLOCK, "{status:?}");
    engine.pool_destroy(&spec.name).unwrap();
}

#[test]
fn what_was_written_is_there_after_a_clean_end() {
    for shards in [1, 2] {
        let folder = Folder::new();
        for spec in kinds(&folder, shards) {
            exercise(engine(usize::from(shards)), &spec, |engine| {
                engine.shutdown();
                drop(engine);
                support::engine(usize::from(shards))
            });
        }
    }
}

#[test]
fn what_was_flushed_is_there_after_a_hard_end() {
    for shards in [1, 2] {
        let folder = Folder::new();
        for spec in kinds(&folder, shards) {
            exercise(engine(usize::from(shards)), &spec, |engine| {
                // Tasks are dropped where they are: no checkpoint, no last barrier.
                drop(engine);
                support::engine(usize::from(shards))
            });
        }
    }
}

#[test]
fn a_pool_moves_to_another_engine_by_its_drives_alone() {
    let folder = Folder::new();
    let first = engine(2);
    let spec = tiered(&folder, "tank", 2, 128, 256);
    first.pool_create(&spec).unwrap();
    first.volume_create("tank", &volume("v", 64)).unwrap();
    Client::open(&first, "tank", "v")
        .write(5 * MIB, &pattern(1, 65536))
        .unwrap();
    first.pool_export("tank").unwrap();
    let second = engine(1);
    let found = second.pool_scan(&drives_of(&spec)).unwrap().pools;
    assert_eq!(
        (found.len(), found[0].name.as_str(), found[0].missing.len()),
        (1, "tank", 0)
    );
    second
        .pool_import(&drives_of(&spec), "tank", false)
        .unwrap();
    let client = Client::open(&second, "tank", "v");
    assert_eq!(client.read(5 * MIB, 65536).unwrap(), pattern(1, 65536));
    second.shutdown();
}

#[test]
fn what_the_fast_tier_holds_is_known_after_a_hard_end() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 128, 256);
    let first = engine(2);
    first.pool_create(&spec).unwrap();
    first.volume_create("tank", &volume("v", 600)).unwrap();
    let client = Client::open(&first, "tank", "v");
    for number in 0..50 {
        client
            .write(number * 11 * MIB, &pattern(number, MIB as usize))
            .unwrap();
    }
    client.flush().unwrap();
    drop(first);
    let second = engine(2);
    second
        .pool_import(&drives_of(&spec), "tank", false)
        .unwrap();
    // The checkpoint that ends an opening keeps no page that the journal did not name.
    second.pool_export("tank").unwrap();
    second
        .pool_import(&drives_of(&spec), "tank", false)
        .unwrap();
    second.pool_cool("tank").unwrap();
    let status = second.pool_status("tank").unwrap();
    assert_eq!(
        (status.fast_dirty, status.fast_shadow, status.used),
        (0, 0, 50 * MIB)
    );
    let client = Client::open(&second, "tank", "v");
    for number in 0..50 {
        assert!(
            client.read(number * 11 * MIB, MIB as usize).unwrap() == pattern(number, MIB as usize)
        );
    }
    second.shutdown();
}

#[test]
fn space_that_comes_free_leaves_the_trees_and_the_pool_opens_again() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 128, 256);
    let mut now = engine(2);
    now.pool_create(&spec).unwrap();
    now.volume_create("tank", &volume("v", 300)).unwrap();
    for round in 0..6 {
        let client = Client::open(&now, "tank", "v");
        match round {
            0 => client.write(0, &pattern(1, MIB as usize)).unwrap(),
            1 => now.pool_cool("tank").unwrap(),
            3 => client.discard(0, 300 * MIB).unwrap(),
            _ => {}
        }
        let first = client.read(0, MIB as usize).unwrap();
        let expected = if round < 3 {
            pattern(1, MIB as usize)
        } else {
            vec![0; MIB as usize]
        };
        assert!(first == expected, "round {round}");
        now.pool_export("tank").unwrap();
        now = engine(2);
        now.pool_import(&drives_of(&spec), "tank", false).unwrap();
    }
    let status = now.pool_status("tank").unwrap();
    assert_eq!((status.used, status.vdrives[1].used), (0, 0), "{status:?}");
    now.shutdown();
}

#[test]
fn a_drive_that_is_named_twice_counts_once_and_one_in_use_is_passed_over() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 128, 256);
    let first = engine(1);
    first.pool_create(&spec).unwrap();
    first.pool_export("tank").unwrap();
    let mut named = drives_of(&spec);
    for (number, drive) in drives_of(&spec).iter().enumerate() {
        let canonical = drives::canonical(drive).unwrap();
        let path = canonical.strip_prefix("file:").unwrap();
        let link = format!("{path}-link-{number}");
        std::os::unix::fs::symlink(path, &link).unwrap();
        named.push(format!("file:{link}"));
    }
    let elsewhere = Folder::new();
    let other = tiered(&elsewhere, "other", 1, 128, 256);
    let second = engine(1);
    second.pool_create(&other).unwrap();
    let all: Vec<String> = named.iter().chain(&drives_of(&other)).cloned().collect();
    let report = first.pool_scan(&all).unwrap();
    assert_eq!(report.pools.len(), 1);
    assert_eq!(report.pools[0].found.len(), drives_of(&spec).len());
    assert_eq!(report.passed_over.len(), drives_of(&other).len());
    first.pool_import(&all, "tank", false).unwrap();
    // By another name it is in use nevertheless.
    let again = first.pool_create(&PoolSpec {
        name: "again".to_owned(),
        ..spec.clone()
    });
    assert_eq!(again.unwrap_err().code, ErrorCode::Exists);
    assert_eq!(first.pool_scan(&named).unwrap().pools, []);
    first.shutdown();
    second.shutdown();
}
