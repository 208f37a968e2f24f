//! Promoting a clone: whose a snapshot is changes, and nothing else.

use crate::support::{self, BLOCK, Client, Folder, MIB, Random, engine, pattern, tiered, volume};
use engine::{Engine, ErrorCode, ExportRecord, PoolSpec, VolumeChange, VolumeSpec};
use std::collections::BTreeMap;

/// Regions of 256 MiB, which shards have in turn; of each, and of its chunks, so many parts are used.
const USED: (u64, u64, u64) = (3, 2, 4);
const SIZE_MIB: u64 = 2 * 256 + 8;

/// What each of the blocks that are used holds: 0 is zeroes.
type Content = Vec<u64>;

/// The blocks that are used, as bytes of a volume.
fn places() -> impl Iterator<Item = u64> {
    let (regions, chunks, blocks) = USED;
    (0..regions * chunks * blocks).map(move |index| {
        let (region, rest) = (index / (chunks * blocks), index % (chunks * blocks));
        region * 256 * MIB + rest / blocks * MIB + rest % blocks * BLOCK
    })
}

fn bytes(place: u64, stamp: u64) -> Vec<u8> {
    match stamp {
        0 => vec![0; BLOCK as usize],
        _ => pattern(place << 20 | stamp, BLOCK as usize),
    }
}

/// A snapshot as it has to be.
struct Taken {
    name: String,
    owner: String,
    /// Snapshots beneath it, the oldest first.
    under: Vec<u64>,
    content: Content,
}

/// A volume as it has to be.
struct Known {
    /// Snapshots that it is based on, the oldest first.
    chain: Vec<u64>,
    content: Content,
}

/// A pool, and what everybody must have in it.
struct World {
    engine: Engine,
    spec: PoolSpec,
    volumes: BTreeMap<String, Known>,
    /// By number, in the order of taking.
    snapshots: BTreeMap<u64, Taken>,
    random: Random,
    stamp: u64,
    promoted: usize,
}

impl World {
    fn new(folder: &Folder, shards: u16, seed: u64) -> Self {
        let spec = tiered(folder, "tank", shards, 192, 256);
        let engine = engine(usize::from(shards));
        engine.pool_create(&spec).unwrap();
        let mut world = Self {
            engine,
            spec,
            volumes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            random: Random(seed),
            stamp: 0,
            promoted: 0,
        };
        world.make("v");
        world
    }

    fn make(&mut self, name: &str) {
        // A quota that is not reached has everything counted, for the audit; what is reserved is used up
        // and given back.
        let spec = VolumeSpec {
            quota: 1 << 40,
            reservation: 64 << 10,
            ..volume(name, SIZE_MIB)
        };
        self.engine.volume_create("tank", &spec).unwrap();
        let known = Known {
            chain: Vec::new(),
            content: vec![0; places().count()],
        };
        self.volumes.insert(name.to_owned(), known);
    }

    fn any_volume(&mut self) -> String {
        let at = self.random.below(self.volumes.len() as u64) as usize;
        self.volumes.keys().nth(at).unwrap().clone()
    }

    fn any_snapshot(&mut self) -> Option<u64> {
        let count = self.snapshots.len() as u64;
        if count == 0 {
            return None;
        }
        let at = self.random.below(count) as usize;
        self.snapshots.keys().nth(at).copied()
    }

    fn write(&mut self) {
        let name = self.any_volume();
        let client = Client::open(&self.engine, "tank", &name);
        self.stamp += 1;
        let stamp = match self.random.below(6) {
            0 => 0,
            _ => self.stamp,
        };
        let at = self.random.below(places().count() as u64) as usize;
        let place = places().nth(at).unwrap();
        match stamp {
            0 => client.discard(place, BLOCK).unwrap(),
            _ => client.write(place, &bytes(place, stamp)).unwrap(),
        }
        self.volumes.get_mut(&name).unwrap().content[at] = stamp;
    }

    fn has(&self, volume: &str, name: &str) -> bool {
        let mut all = self.snapshots.values();
        all.any(|known| known.owner == volume && known.name == name)
    }

    /// Of one volume, or of all at one moment; few names, so that volumes have the same ones.
    fn snapshot(&mut self, of: Vec<String>) {
        let name = format!("n{}", self.random.below(40));
        let taken = self.engine.snapshot_create("tank", &of, &name, 7);
        if of.iter().any(|volume| self.has(volume, &name)) {
            assert_eq!(taken.unwrap_err().code, ErrorCode::Exists);
            return;
        }
        taken.unwrap();
        // The label has them in the order of its volumes.
        for volume in self.engine.volume_list("tank").unwrap() {
            if !of.contains(&volume.name) {
                continue;
            }
            self.stamp += 1;
            let known = self.volumes.get_mut(&volume.name).unwrap();
            let taken = Taken {
                name: name.clone(),
                owner: volume.name,
                under: known.chain.clone(),
                content: known.content.clone(),
            };
            self.snapshots.insert(self.stamp, taken);
            known.chain.push(self.stamp);
        }
    }

    /// The snapshot that a volume was cloned from.
    fn origin(&self, volume: &str) -> Option<u64> {
        let mut down = self.volumes[volume].chain.iter().rev();
        down.find(|at| self.snapshots[at].owner != volume).copied()
    }

    fn clones_of(&self, snapshot: u64) -> Vec<String> {
        let names = self.volumes.keys();
        names
            .filter(|name| self.origin(name) == Some(snapshot))
            .cloned()
            .collect()
    }

    fn clone_from(&mut self, snapshot: u64) {
        self.stamp += 1;
        let name = format!("c{}", self.stamp);
        let from = &self.snapshots[&snapshot];
        self.engine
            .snapshot_clone("tank", &from.owner, &from.name, &name)
            .unwrap();
        let change = VolumeChange {
            quota: Some(1 << 40),
            reservation: Some(16 << 10),
            ..VolumeChange::default()
        };
        self.engine.volume_change("tank", &name, &change).unwrap();
        let mut chain = from.under.clone();
        chain.push(snapshot);
        let content = from.content.clone();
        self.volumes.insert(name, Known { chain, content });
    }

    fn roll_back(&mut self, snapshot: u64) {
        let to = &self.snapshots[&snapshot];
        self.engine
            .volume_roll_back("tank", &to.owner, &to.name)
            .unwrap();
        let known = self.volumes.get_mut(&to.owner).unwrap();
        known.chain = to.under.clone();
        known.chain.push(snapshot);
        known.content = to.content.clone();
    }

    fn delete_snapshot(&mut self, snapshot: u64) {
        let known = &self.snapshots[&snapshot];
        let names = [known.name.clone()];
        let deleted = self.engine.snapshot_delete("tank", &known.owner, &names);
        let clones = self.clones_of(snapshot);
        if !clones.is_empty() {
            let refused = deleted.unwrap_err();
            assert_eq!(refused.code, ErrorCode::Refused, "{refused}");
            for name in clones {
                assert!(refused.message.contains(&name), "{name}: {refused}");
            }
            return;
        }
        deleted.unwrap();
        self.snapshots.remove(&snapshot);
        let volumes = self.volumes.values_mut().map(|known| &mut known.chain);
        let under = self.snapshots.values_mut().map(|known| &mut known.under);
        for chain in volumes.chain(under) {
            chain.retain(|at| *at != snapshot);
        }
    }

    fn delete_volume(&mut self, name: &str) {
        let deleted = self.engine.volume_delete("tank", name);
        if self.snapshots.values().any(|known| known.owner == name) {
            assert_eq!(deleted.unwrap_err().code, ErrorCode::Refused);
            return;
        }
        deleted.unwrap();
        self.volumes.remove(name);
    }

    fn promote(&mut self, clone: &str) {
        let promoted = self.engine.volume_promote("tank", clone);
        let Some(origin) = self.origin(clone) else {
            assert_eq!(promoted.unwrap_err().code, ErrorCode::Invalid);
            return;
        };
        let parent = self.snapshots[&origin].owner.clone();
        let chain = &self.volumes[clone].chain;
        let down = chain.iter().rev().skip_while(|at| **at != origin);
        let mut moving: Vec<u64> = down
            .take_while(|at| self.snapshots[at].owner == parent)
            .copied()
            .collect();
        moving.reverse();
        let names: Vec<String> = moving
            .iter()
            .map(|at| self.snapshots[at].name.clone())
            .collect();
        if names.iter().any(|name| self.has(clone, name)) {
            assert_eq!(promoted.unwrap_err().code, ErrorCode::Exists);
            return;
        }
        let promoted = promoted.unwrap();
        assert_eq!((promoted.parent, promoted.snapshots), (parent, names));
        for at in moving {
            self.snapshots.get_mut(&at).unwrap().owner = clone.to_owned();
        }
        self.promoted += 1;
    }

    fn change(&mut self) {
        match self.random.below(14) {
            0..4 => {
                let name = self.any_volume();
                self.snapshot(vec![name]);
            }
            4 => self.snapshot(self.volumes.keys().cloned().collect()),
            5 | 6 if self.volumes.len() < 6 => {
                if let Some(snapshot) = self.any_snapshot() {
                    self.clone_from(snapshot);
                }
            }
            7..10 => {
                let name = self.any_volume();
                self.promote(&name);
            }
            10 => {
                if let Some(snapshot) = self.any_snapshot() {
                    self.roll_back(snapshot);
                }
            }
            11 | 12 => {
                if let Some(snapshot) = self.any_snapshot() {
                    self.delete_snapshot(snapshot);
                }
            }
            13 if self.volumes.len() > 1 => {
                let name = self.any_volume();
                self.delete_volume(&name);
            }
            _ => {}
        }
    }

    fn check(&self) {
        for (name, known) in &self.volumes {
            self.check_content(name, &known.content);
        }
        for known in self.snapshots.values() {
            let name = format!("{}@{}", known.owner, known.name);
            self.check_content(&name, &known.content);
        }
        for volume in self.volumes.keys() {
            let listed = self.engine.snapshot_list("tank", Some(volume)).unwrap();
            let listed = listed.into_iter().map(|mut known| {
                known.clones.sort();
                (known.name, known.clones)
            });
            let own = self
                .snapshots
                .iter()
                .filter(|(_, known)| known.owner == *volume)
                .map(|(at, known)| (known.name.clone(), self.clones_of(*at)));
            let (listed, own): (Vec<_>, Vec<_>) = (listed.collect(), own.collect());
            assert_eq!(listed, own, "of {volume}, in the order of taking");
        }
    }

    fn check_content(&self, name: &str, content: &Content) {
        let client = Client::open(&self.engine, "tank", name);
        for (place, stamp) in places().zip(content) {
            let read = client.read(place, BLOCK as usize).unwrap();
            assert!(read == bytes(place, *stamp), "{name} at {place}: {stamp}");
        }
    }

    fn restart(&mut self, hard: bool) {
        for name in self.volumes.keys() {
            Client::open(&self.engine, "tank", name).flush().unwrap();
        }
        support::start_again(&mut self.engine, &self.spec, hard);
    }

    /// Waits until nothing is left to be reclaimed, then holds the books against the maps.
    fn settle(&self) {
        support::wait_jobs(&self.engine);
        support::audit_at_rest(&self.engine, "tank");
    }
}

fn exercise(shards: u16, seed: u64) {
    let folder = Folder::new();
    let mut world = World::new(&folder, shards, seed);
    for round in 0..6 {
        for _ in 0..30 {
            (0..4).for_each(|_| world.write());
            world.change();
        }
        world.check();
        world.restart(round % 2 == 0);
        world.check();
        world.settle();
        world.check();
    }
    assert!(world.promoted >= 8, "only {} promoted", world.promoted);
    world.engine.pool_destroy("tank").unwrap();
}

#[test]
fn whoever_is_promoted_everybody_keeps_what_they_have() {
    exercise(1, 0x1234_5679);
    exercise(3, 0x9876_5431);
}

/// A volume `v` with snapshots `a` and `b`, and a clone `c` of `b` that was written to.
fn with_clone(folder: &Folder) -> World {
    let mut world = World::new(folder, 1, 5);
    for name in ["a", "b"] {
        (0..8).for_each(|_| world.write());
        world
            .engine
            .snapshot_create("tank", &["v".into()], name, 7)
            .unwrap();
    }
    let content = world.volumes["v"].content.clone();
    world.engine.snapshot_clone("tank", "v", "b", "c").unwrap();
    let chain = Vec::new();
    world.volumes.insert("c".into(), Known { chain, content });
    (0..8).for_each(|_| world.write());
    world
}

/// Volumes and names of all snapshots.
fn listed(engine: &Engine) -> Vec<String> {
    let found = engine.snapshot_list("tank", None).unwrap();
    let name = |known: engine::SnapshotStatus| format!("{}@{}", known.volume, known.name);
    found.into_iter().map(name).collect()
}

#[test]
fn the_former_parent_can_be_deleted_and_the_clone_stays_whole() {
    let folder = Folder::new();
    let mut world = with_clone(&folder);
    let engine = &world.engine;
    engine
        .snapshot_change("tank", "v", "a", None, Some(true))
        .unwrap();
    engine.volume_promote("tank", "c").unwrap();
    assert_eq!(listed(engine), ["c@a", "c@b"]);
    let kept = engine.snapshot_list("tank", Some("c")).unwrap();
    assert!(kept[0].held && kept[1].clones == ["v"], "{kept:?}");
    // What is based on them, by their new names, and to where the clone is rolled back.
    let from_a = |volume: &str, name: &str| {
        let diff = engine.snapshot_diff("tank", volume, Some(name), None, 0, 100);
        diff.map(|_| ()).map_err(|failed| failed.code)
    };
    assert_eq!(from_a("c", "a"), Ok(()));
    assert_eq!(from_a("v", "c@a"), Ok(()));
    assert_eq!(from_a("v", "a"), Err(ErrorCode::NotFound));
    let gone = world.engine.volume_delete("tank", "v").unwrap();
    world.volumes.remove("v");
    assert_eq!(support::wait_job(&world.engine, gone).0, "done");
    world.restart(true);
    assert_eq!(listed(&world.engine), ["c@a", "c@b"]);
    world.check_content("c", &world.volumes["c"].content);
    // The volume's first layer is merged into what is left of it.
    world
        .engine
        .snapshot_change("tank", "c", "a", None, Some(false))
        .unwrap();
    let names = ["a".to_owned(), "b".to_owned()];
    world.engine.snapshot_delete("tank", "c", &names).unwrap();
    world.settle();
    world.check_content("c", &world.volumes["c"].content);
    world.engine.volume_delete("tank", "c").unwrap();
    world.settle();
    assert_eq!(world.engine.pool_status("tank").unwrap().used, 0);
}

#[test]
fn a_snapshot_that_was_opened_before_tells_its_bases_by_their_new_names() {
    let folder = Folder::new();
    let world = with_clone(&folder);
    let engine = &world.engine;
    let opened = engine.volume_open("tank", "v@b", None).unwrap();
    let names = |device: &dyn block::BlockDevice| {
        let bases = device.bases().into_iter().map(|(name, _)| name);
        bases.collect::<Vec<_>>()
    };
    assert_eq!(names(&*opened), ["b", "a"]);
    engine.volume_promote("tank", "c").unwrap();
    let again = engine.volume_open("tank", "c@b", None).unwrap();
    assert_eq!(names(&*again), ["b", "a"]);
    let parent = engine.volume_open("tank", "v", None).unwrap();
    assert_eq!(names(&*parent), ["c@b", "c@a"]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let folder = Folder::new();
    let world = with_clone(&folder);
    let engine = &world.engine;
    let refused = |clone: &str, code: ErrorCode, says: &str| {
        let before = listed(engine);
        let failed = engine.volume_promote("tank", clone).unwrap_err();
        assert_eq!(failed.code, code, "{failed}");
        assert!(failed.message.contains(says), "{failed}: {says}");
        assert_eq!(listed(engine), before);
    };
    refused("v", ErrorCode::Invalid, "is not a clone");
    refused("none", ErrorCode::NotFound, "none");
    // The older of the two is the one that both have.
    engine
        .snapshot_create("tank", &["c".into()], "a", 9)
        .unwrap();
    refused("c", ErrorCode::Exists, "both have a snapshot 'a'");
    engine
        .snapshot_change("tank", "c", "a", Some("own"), None)
        .unwrap();
    let export = ExportRecord {
        name: "look".to_owned(),
        volume: "v@a".to_owned(),
        kind: "nbd".to_owned(),
        parameters: BTreeMap::new(),
        initiator: None,
        disabled: false,
    };
    engine.pool_set_exports("tank", vec![export]).unwrap();
    refused("c", ErrorCode::Busy, "exported as look");
    engine.pool_set_exports("tank", Vec::new()).unwrap();
    engine.volume_promote("tank", "c").unwrap();
    assert_eq!(listed(engine), ["c@a", "c@b", "c@own"]);
    refused("c", ErrorCode::Invalid, "is not a clone");
    // And back.
    engine.volume_promote("tank", "v").unwrap();
    assert_eq!(listed(engine), ["v@a", "v@b", "c@own"]);
}

#[test]
fn a_crash_leaves_all_snapshots_with_one_or_with_the_other() {
    let folder = Folder::new();
    let world = with_clone(&folder);
    for name in ["v", "c"] {
        Client::open(&world.engine, "tank", name).flush().unwrap();
    }
    let copy = |name: &str| {
        let to = folder.path().join(name);
        std::fs::create_dir(&to).unwrap();
        for drive in ["fast", "slow"] {
            std::fs::copy(folder.path().join(drive), to.join(drive)).unwrap();
        }
    };
    copy("before");
    world.engine.volume_promote("tank", "c").unwrap();
    copy("after");
    world.engine.shutdown();
    for (name, due) in [("before", ["v@a", "v@b"]), ("after", ["c@a", "c@b"])] {
        let engine = engine(1);
        let drives = ["fast", "slow"].map(|drive| folder.existing(&format!("{name}/{drive}")));
        engine.pool_import(&drives, "tank", false).unwrap();
        assert_eq!(listed(&engine), due, "{name}");
        engine.shutdown();
    }
}
