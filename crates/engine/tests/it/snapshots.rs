//! Snapshots and clones hold what was there, whatever is written, moved, deleted or restarted since.

use crate::support::{self, Client, Folder, MIB, Random, pattern, tiered, volume};
use engine::{Engine, ErrorCode, PoolSpec};
use std::collections::BTreeMap;

const SIZE: u64 = 40 * MIB;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = SIZE / BLOCK;
/// Memory for all pages of the maps, and for a few.
const MUCH: u64 = 8 * MIB;
const LITTLE: u64 = 96 << 10;

/// What each block holds: 0 is zeroes.
type Content = Vec<u64>;

/// A pool's volumes and snapshots, and what they must hold.
struct World {
    engine: Engine,
    spec: PoolSpec,
    /// Bytes for maps.
    memory: u64,
    volumes: BTreeMap<String, Content>,
    snapshots: BTreeMap<(String, String), Content>,
    random: Random,
    stamp: u64,
}

/// Times that a snapshot is requested, a tenth of a second apart.
const TRIES: usize = 600;

impl World {
    fn new(folder: &Folder, shards: u16, seed: u64, memory: u64) -> Self {
        let engine = support::engine_with(usize::from(shards), memory);
        let spec = tiered(folder, "tank", shards, 160, 512);
        engine.pool_create(&spec).unwrap();
        engine
            .volume_create("tank", &volume("v", SIZE / MIB))
            .unwrap();
        Self {
            engine,
            spec,
            memory,
            volumes: BTreeMap::from([("v".to_owned(), vec![0; BLOCKS as usize])]),
            snapshots: BTreeMap::new(),
            random: Random(seed),
            stamp: 0,
        }
    }

    /// Takes a snapshot. What was deleted becomes free in the background, and until then a small metadata region may
    /// have no room for one more.
    fn take(&self, volumes: &[String], name: &str) {
        for _ in 0..TRIES {
            match self.engine.snapshot_create("tank", volumes, name, 7) {
                Err(error) if error.code == ErrorCode::NoSpace => {
                    std::thread::park_timeout(std::time::Duration::from_millis(100));
                }
                taken => return drop(taken.unwrap()),
            }
        }
        panic!("nothing came free for {name}");
    }

    fn any_volume(&mut self) -> String {
        let at = self.random.below(self.volumes.len() as u64) as usize;
        self.volumes.keys().nth(at).unwrap().clone()
    }

    fn any_snapshot(&mut self) -> Option<(String, String)> {
        let count = self.snapshots.len() as u64;
        let at = if count > 0 {
            self.random.below(count)
        } else {
            return None;
        };
        self.snapshots.keys().nth(at as usize).cloned()
    }

    fn io(&mut self) {
        let name = self.any_volume();
        let client = Client::open(&self.engine, "tank", &name);
        let longest = if self.random.below(8) == 0 { 600 } else { 20 };
        let count = 1 + self.random.below(longest);
        let first = self.random.below(BLOCKS - count);
        self.stamp += 1;
        let stamp = if self.random.below(5) == 0 {
            0
        } else {
            self.stamp
        };
        let content = self.volumes.get_mut(&name).unwrap();
        content[first as usize..(first + count) as usize].fill(stamp);
        match stamp {
            0 => client.discard(first * BLOCK, count * BLOCK).unwrap(),
            _ => {
                let bytes: Vec<u8> = (first..first + count)
                    .flat_map(|block| bytes(block, stamp))
                    .collect();
                client.write(first * BLOCK, &bytes).unwrap();
            }
        }
        if self.random.below(10) == 0 {
            client.flush().unwrap();
        }
        self.part_of_a_block(&name);
    }

    /// Writes a sector, which has to be merged with what a layer beneath may have.
    fn part_of_a_block(&mut self, name: &str) {
        let block = self.random.below(BLOCKS);
        let client = Client::open(&self.engine, "tank", name);
        let stamp = self.volumes[name][block as usize];
        if stamp == 0 {
            return;
        }
        let whole = bytes(block, stamp);
        client
            .write(block * BLOCK + 512, &whole[512..1024])
            .unwrap();
    }

    fn change(&mut self) {
        self.stamp += 1;
        let new = format!("n{}", self.stamp);
        match self.random.below(12) {
            0..4 => {
                let name = self.any_volume();
                self.take(std::slice::from_ref(&name), &new);
                let content = self.volumes[&name].clone();
                self.snapshots.insert((name, new), content);
            }
            4 => {
                let volumes: Vec<String> = self.volumes.keys().cloned().collect();
                self.take(&volumes, &new);
                for (name, content) in &self.volumes {
                    self.snapshots
                        .insert((name.clone(), new.clone()), content.clone());
                }
            }
            5..8 => {
                let Some((name, snapshot)) = self.any_snapshot() else {
                    return;
                };
                let deleted =
                    self.engine
                        .snapshot_delete("tank", &name, std::slice::from_ref(&snapshot));
                match deleted {
                    Ok(()) => drop(self.snapshots.remove(&(name, snapshot))),
                    Err(failed) => assert_eq!(failed.code, ErrorCode::Refused, "{failed}"),
                }
            }
            8 if self.volumes.len() < 5 => {
                let Some((name, snapshot)) = self.any_snapshot() else {
                    return;
                };
                self.engine
                    .snapshot_clone("tank", &name, &snapshot, &new)
                    .unwrap();
                let content = self.snapshots[&(name, snapshot)].clone();
                self.volumes.insert(new, content);
            }
            9 => {
                let Some((name, snapshot)) = self.any_snapshot() else {
                    return;
                };
                self.engine
                    .volume_roll_back("tank", &name, &snapshot)
                    .unwrap();
                let content = self.snapshots[&(name.clone(), snapshot)].clone();
                self.volumes.insert(name, content);
            }
            10 if self.volumes.len() > 1 => {
                let name = self.any_volume();
                match self.engine.volume_delete("tank", &name) {
                    Ok(_) => drop(self.volumes.remove(&name)),
                    Err(failed) => assert_eq!(failed.code, ErrorCode::Refused, "{failed}"),
                }
            }
            11 => self.engine.pool_cool("tank").unwrap(),
            _ => {}
        }
    }

    fn check(&self) {
        for (name, content) in &self.volumes {
            self.check_one(name, content);
            self.check_map(name, content);
        }
        for ((volume, name), content) in &self.snapshots {
            self.check_one(&format!("{volume}@{name}"), content);
        }
    }

    /// The map covers everything that can be read, in whichever layer it is.
    fn check_map(&self, name: &str, content: &Content) {
        let cells = self
            .engine
            .volume_map("tank", name, 0..u64::MAX, 8)
            .unwrap();
        let part = BLOCKS as usize / cells.len();
        for (cell, due) in cells.iter().zip(content.chunks(part)) {
            let due = due.iter().filter(|stamp| **stamp != 0).count() as u64;
            assert_eq!((cell.ram + cell.fast + cell.slow) / BLOCK, due, "{name}");
        }
    }

    fn check_one(&self, name: &str, content: &Content) {
        let client = Client::open(&self.engine, "tank", name);
        for first in (0..BLOCKS).step_by(256) {
            let count = 256.min(BLOCKS - first);
            let read = client
                .read(first * BLOCK, (count * BLOCK) as usize)
                .unwrap();
            for (index, found) in read.chunks(BLOCK as usize).enumerate() {
                let block = first + index as u64;
                let stamp = content[block as usize];
                assert!(
                    found == bytes(block, stamp),
                    "block {block} of {name}, due {stamp}"
                );
            }
        }
    }

    /// Waits until nothing is left to be reclaimed, then holds the books against the maps.
    fn settle(&self) {
        support::wait_jobs(&self.engine);
        support::audit_at_rest(&self.engine, "tank");
    }

    fn restart(&mut self, hard: bool) {
        for name in self.volumes.keys() {
            Client::open(&self.engine, "tank", name).flush().unwrap();
        }
        let other = support::engine_with(usize::from(self.spec.shards), self.memory);
        support::go_on_in(&mut self.engine, other, &self.spec, hard);
    }
}

fn bytes(block: u64, stamp: u64) -> Vec<u8> {
    match stamp {
        0 => vec![0; BLOCK as usize],
        _ => pattern(block << 32 | stamp, BLOCK as usize),
    }
}

fn exercise(shards: u16, seed: u64, memory: u64) {
    let folder = Folder::new();
    let mut world = World::new(&folder, shards, seed, memory);
    for round in 0..support::rounds(4) {
        for _ in 0..12 {
            (0..10).for_each(|_| world.io());
            world.change();
        }
        world.check();
        world.restart(round % 2 == 0);
        world.check();
        world.settle();
        world.check();
    }
    world.engine.pool_destroy("tank").unwrap();
}

#[test]
fn volumes_snapshots_and_clones_keep_what_they_have() {
    exercise(1, 0x1234_5679, MUCH);
    exercise(2, 0x9876_5431, MUCH);
}

#[test]
fn they_do_when_few_pages_fit_into_memory() {
    exercise(1, 0x5179_3243, LITTLE);
    exercise(2, 0x3133_5171, LITTLE);
}

#[test]
fn deleting_everything_gives_all_space_back() {
    let folder = Folder::new();
    let mut world = World::new(&folder, 2, 99, MUCH);
    for number in 0..6 {
        (0..30).for_each(|_| world.io());
        world
            .engine
            .snapshot_create("tank", &["v".into()], &format!("s{number}"), number)
            .unwrap();
        if number == 3 {
            world.engine.pool_cool("tank").unwrap();
        }
    }
    let listed = world.engine.snapshot_list("tank", Some("v")).unwrap();
    assert_eq!(listed.len(), 6);
    let refused = world.engine.volume_delete("tank", "v").unwrap_err();
    assert!(refused.message.contains("6 snapshots"), "{refused}");
    for number in [3, 0, 5, 1, 2, 4] {
        world
            .engine
            .snapshot_delete("tank", "v", &[format!("s{number}")])
            .unwrap();
    }
    world.check();
    world.settle();
    let stored = world.volumes["v"]
        .iter()
        .filter(|stamp| **stamp != 0)
        .count() as u64;
    let status = world.engine.pool_status("tank").unwrap();
    let mapped = world.engine.volume_list("tank").unwrap()[0].mapped;
    assert_eq!(mapped, stored * BLOCK, "{status:?}");
    world.engine.volume_delete("tank", "v").unwrap();
    world.settle();
    let status = world.engine.pool_status("tank").unwrap();
    assert_eq!(status.used, 0, "{status:?}");
}

#[test]
fn a_snapshot_cannot_be_written_and_a_held_or_cloned_one_not_deleted() {
    let folder = Folder::new();
    let mut world = World::new(&folder, 1, 5, MUCH);
    world.io();
    let engine = &world.engine;
    engine
        .snapshot_create("tank", &["v".into()], "a", 1)
        .unwrap();
    let reader = Client::open(engine, "tank", "v@a");
    assert!(reader.0.geometry().read_only);
    assert_eq!(
        reader.write(0, &[1; 512]).unwrap_err().kind,
        block::ErrorKind::ReadOnly
    );
    engine
        .snapshot_change("tank", "v", "a", Some("b"), Some(true))
        .unwrap();
    let delete = || engine.snapshot_delete("tank", "v", &["b".into()]);
    assert!(delete().unwrap_err().message.contains("is held"));
    engine
        .snapshot_change("tank", "v", "b", None, Some(false))
        .unwrap();
    engine.snapshot_clone("tank", "v", "b", "copy").unwrap();
    assert!(delete().unwrap_err().message.contains("has clones: copy"));
    engine.volume_delete("tank", "copy").unwrap();
    support::wait_jobs(engine);
    delete().unwrap();
    assert_eq!(engine.snapshot_list("tank", None).unwrap(), []);
    let gone = reader.read(0, 512).unwrap_err();
    assert_eq!(gone.kind, block::ErrorKind::Gone);
}
