//! Differences between snapshots: exactly the blocks that were written or discarded in between,
//! whatever is merged, cloned, rolled back or restarted meanwhile.

use crate::support::{self, BLOCK, Client, Folder, MIB, Random, engine, pattern, tiered, volume};
use block::{AllocationState, IoBuf, IoError, OpKind};
use engine::{Engine, ErrorCode, PoolSpec, SnapshotDiff};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// More than three of the regions that shards take turns with.
const SIZE: u64 = 800 * MIB;
const BLOCKS: u64 = SIZE / BLOCK;

/// Whether a block holds data, and the step that wrote or discarded it last.
type Cell = (bool, u64);

/// What a volume or a snapshot must hold, and the snapshots that it is based on.
#[derive(Clone)]
struct Model {
    cells: BTreeMap<u64, Cell>,
    stands_on: Vec<u64>,
}

impl Model {
    /// The blocks that hold data, with the step that wrote them.
    fn data(&self) -> impl Iterator<Item = (u64, u64)> {
        let data = self.cells.iter().filter(|(_, (is_data, _))| *is_data);
        data.map(|(block, (_, step))| (*block, *step))
    }
}

struct World {
    engine: Engine,
    spec: PoolSpec,
    volumes: BTreeMap<String, Model>,
    /// By volume and name, with a number of their own.
    snapshots: BTreeMap<(String, String), (u64, Model)>,
    random: Random,
    step: u64,
}

impl World {
    fn new(folder: &Folder, shards: u16, seed: u64) -> Self {
        let engine = engine(usize::from(shards));
        let spec = tiered(folder, "tank", shards, 256, 1024);
        engine.pool_create(&spec).unwrap();
        let made = volume("v", SIZE / MIB);
        engine.volume_create("tank", &made).unwrap();
        let empty = Model {
            cells: BTreeMap::new(),
            stands_on: Vec::new(),
        };
        Self {
            engine,
            spec,
            volumes: BTreeMap::from([("v".to_owned(), empty)]),
            snapshots: BTreeMap::new(),
            random: Random(seed),
            step: 0,
        }
    }

    fn any_volume(&mut self) -> String {
        let at = self.random.below(self.volumes.len() as u64) as usize;
        self.volumes.keys().nth(at).unwrap().clone()
    }

    fn any_snapshot(&mut self) -> Option<(String, String)> {
        let count = self.snapshots.len().max(1) as u64;
        let at = self.random.below(count) as usize;
        self.snapshots.keys().nth(at).cloned()
    }

    fn io(&mut self) {
        let name = self.any_volume();
        let client = Client::open(&self.engine, "tank", &name);
        let longest = if self.random.below(8) == 0 { 600 } else { 12 };
        let count = 1 + self.random.below(longest);
        // A few places, so that the same blocks are met again.
        let place = self.random.below(6) * 130 * MIB / BLOCK;
        let first = (place + self.random.below(700)).min(BLOCKS - count);
        self.step += 1;
        let is_data = self.random.below(4) > 0;
        let cells = &mut self.volumes.get_mut(&name).unwrap().cells;
        let step = self.step;
        cells.extend((first..first + count).map(|block| (block, (is_data, step))));
        if is_data {
            let bytes = pattern(self.step, (count * BLOCK) as usize);
            client.write(first * BLOCK, &bytes).unwrap();
        } else {
            client.discard(first * BLOCK, count * BLOCK).unwrap();
        }
    }

    fn snapshot(&mut self, volume: &str) -> String {
        self.step += 1;
        let name = format!("n{}", self.step);
        let volumes = [volume.to_owned()];
        self.engine
            .snapshot_create("tank", &volumes, &name, 7)
            .unwrap();
        let model = self.volumes.get_mut(volume).unwrap();
        let key = (volume.to_owned(), name.clone());
        self.snapshots.insert(key, (self.step, model.clone()));
        model.stands_on.push(self.step);
        name
    }

    fn change(&mut self) {
        self.step += 1;
        let Some((of, snapshot)) = self.any_snapshot() else {
            let volume = self.any_volume();
            self.snapshot(&volume);
            return;
        };
        let (number, mut model) = self.snapshots[&(of.clone(), snapshot.clone())].clone();
        model.stands_on.push(number);
        match self.random.below(12) {
            0..5 => {
                let volume = self.any_volume();
                self.snapshot(&volume);
            }
            5..8 => {
                let names = [snapshot.clone()];
                match self.engine.snapshot_delete("tank", &of, &names) {
                    Ok(()) => drop(self.snapshots.remove(&(of, snapshot))),
                    Err(failed) => assert_eq!(failed.code, ErrorCode::Refused, "{failed}"),
                }
            }
            8 if self.volumes.len() < 4 => {
                let new = format!("n{}", self.step);
                self.engine
                    .snapshot_clone("tank", &of, &snapshot, &new)
                    .unwrap();
                self.volumes.insert(new, model);
            }
            9 => {
                self.engine
                    .volume_roll_back("tank", &of, &snapshot)
                    .unwrap();
                self.volumes.insert(of, model);
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

    /// Everything that there is, compared with everything else.
    fn check(&mut self) {
        let mut all: Vec<(String, Option<String>, u64, Model)> = Vec::new();
        for (volume, model) in &self.volumes {
            all.push((volume.clone(), None, 0, model.clone()));
        }
        for ((volume, name), (number, model)) in &self.snapshots {
            all.push((volume.clone(), Some(name.clone()), *number, model.clone()));
        }
        for (volume, to, number, model) in all {
            let found = self.all(&volume, None, to.as_deref()).unwrap();
            assert_eq!(found, due(None, &model), "all of {volume} {to:?}");
            let bases: Vec<_> = self.snapshots.clone().into_iter().collect();
            for ((of, name), (base, before)) in bases {
                let from = format!("{of}@{name}");
                let found = self.all(&volume, Some(&from), to.as_deref());
                if !model.stands_on.contains(&base) && base != number {
                    let failed = found.unwrap_err();
                    assert!(failed.contains("does not descend from"), "{failed}");
                    continue;
                }
                let what = format!("{from} to {volume} {to:?}");
                let due = due(Some(&before), &model);
                assert!(found.unwrap() == due, "{what}");
                self.check_device(&volume, &of, &name, to.as_deref(), &due);
            }
        }
    }

    /// What each snapshot alone has: what was written and is nowhere else.
    fn check_unique(&self) {
        let mut seen: BTreeMap<(u64, u64), u32> = BTreeMap::new();
        let snapshots = self.snapshots.values().map(|(_, model)| model);
        for model in self.volumes.values().chain(snapshots) {
            for block in model.data() {
                *seen.entry(block).or_default() += 1;
            }
        }
        for ((volume, name), (_, model)) in &self.snapshots {
            let alone = model.data().filter(|block| seen[block] == 1).count() as u64;
            let found = self.engine.snapshot_unique("tank", volume, name, &|| true);
            assert_eq!(found.unwrap(), Some(alone * BLOCK), "{volume}@{name}");
        }
    }

    /// A front end gets the same result.
    fn check_device(
        &self,
        volume: &str,
        of: &str,
        name: &str,
        to: Option<&str>,
        due: &BTreeMap<u64, bool>,
    ) {
        let opened = to.map_or(volume.to_owned(), |to| format!("{volume}@{to}"));
        let client = Client::open(&self.engine, "tank", &opened);
        let name = if of == volume {
            name.to_owned()
        } else {
            format!("{of}@{name}")
        };
        let bases = client.0.bases();
        let (_, number) = bases.iter().find(|base| base.0 == name).unwrap();
        let found = told(&client, *number).unwrap();
        assert!(found.iter().eq(due.keys()), "{opened} since {name}");
    }

    /// A whole difference, in parts: its blocks, and whether they hold data.
    fn all(
        &mut self,
        volume: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<BTreeMap<u64, bool>, String> {
        let limit = [1, 3, 10, 1000][self.random.below(4) as usize];
        collect(&self.engine, volume, from, to, limit)
    }

    fn restart(&mut self, hard: bool) {
        for name in self.volumes.keys() {
            Client::open(&self.engine, "tank", name).flush().unwrap();
        }
        support::start_again(&mut self.engine, &self.spec, hard);
    }
}

/// The changed blocks since a snapshot, as reported to a front end.
fn told(client: &Client, number: u32) -> Result<Vec<u64>, IoError> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < SIZE {
        let kind = OpKind::Changed(number);
        let answer = client.run(kind, at, SIZE - at, IoBuf::empty(), false);
        answer.result?;
        for extent in answer.extents {
            let end = at + extent.len;
            if extent.state == AllocationState::Changed {
                found.extend(at / BLOCK..end / BLOCK);
            }
            at = end;
        }
    }
    Ok(found)
}

fn collect(
    engine: &Engine,
    volume: &str,
    from: Option<&str>,
    to: Option<&str>,
    limit: usize,
) -> Result<BTreeMap<u64, bool>, String> {
    let mut found = BTreeMap::new();
    let mut start = Some(0);
    while let Some(at) = start {
        let answer = engine.snapshot_diff("tank", volume, from, to, at, limit);
        let SnapshotDiff { size, ranges, next } = answer.map_err(|failed| failed.message)?;
        assert_eq!(size, SIZE);
        assert!(ranges.len() <= limit);
        let mut end = at;
        for range in &ranges {
            assert!(range.offset >= end && range.len > 0, "{ranges:?} from {at}");
            end = range.offset + range.len;
            for block in range.offset / BLOCK..end / BLOCK {
                assert_eq!(found.insert(block, range.data), None);
            }
        }
        let joined = |two: &[engine::ChangedRange]| {
            two[0].offset + two[0].len == two[1].offset && two[0].data == two[1].data
        };
        assert!(!ranges.windows(2).any(joined), "{ranges:?}");
        assert!(next.is_none_or(|next| next > at && next >= end));
        start = next;
    }
    Ok(found)
}

/// The blocks that a difference has to have, and whether they hold data; nothing else may be in it.
fn due(from: Option<&Model>, to: &Model) -> BTreeMap<u64, bool> {
    let before = |block: &u64| from.and_then(|from| from.cells.get(block).copied());
    let changed = to.cells.iter().filter(|(block, (is_data, step))| {
        let (was_data, was_step) = before(block).unwrap_or((false, 0));
        if *is_data {
            *step != was_step
        } else {
            was_data
        }
    });
    changed.map(|(block, cell)| (*block, cell.0)).collect()
}

fn exercise(shards: u16, seed: u64) {
    let folder = Folder::new();
    let mut world = World::new(&folder, shards, seed);
    for round in 0..support::rounds(4) {
        for _ in 0..7 {
            (0..12).for_each(|_| world.io());
            world.change();
        }
        // Layers are being merged meanwhile.
        world.check();
        world.restart(round % 2 == 0);
        world.check();
        support::wait_jobs(&world.engine);
        world.check();
        world.check_unique();
    }
    world.engine.pool_destroy("tank").unwrap();
}

#[test]
fn a_difference_has_what_was_written_and_nothing_else() {
    exercise(1, 0x1357_9bdf);
    exercise(3, 0x0246_8ace);
}

#[test]
fn a_difference_stays_the_same_while_layers_are_merged() {
    let folder = Folder::new();
    let mut world = World::new(&folder, 3, 77);
    let older = world.snapshot("v");
    (0..80).for_each(|_| world.io());
    let first = world.snapshot("v");
    let middle: Vec<String> = (0..6)
        .map(|_| {
            (0..60).for_each(|_| world.io());
            world.snapshot("v")
        })
        .collect();
    (0..60).for_each(|_| world.io());
    let last = world.snapshot("v");
    let model = |name: &str| &world.snapshots[&("v".to_owned(), name.to_owned())].1;
    let due = due(Some(model(&first)), model(&last));
    assert!(due.values().any(|data| *data) && due.values().any(|data| !data));
    let engine = &world.engine;
    let client = Client::open(engine, "tank", &format!("v@{last}"));
    let base = client.0.bases().into_iter().find(|base| base.0 == first);
    let (_, number) = base.unwrap();
    let (ending, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut looks = 0;
            while !over.load(Ordering::Acquire) || looks < 3 {
                match told(&client, number) {
                    Ok(found) => assert!(found.iter().eq(due.keys()), "look {looks}"),
                    Err(failed) => assert!(ending.load(Ordering::Acquire), "{failed}"),
                }
                match collect(engine, "v", Some(&first), Some(&last), 1 + looks % 9) {
                    Ok(found) => assert!(found == due, "look {looks}"),
                    Err(failed) => assert!(ending.load(Ordering::Acquire), "{failed}"),
                }
                looks += 1;
            }
        });
        // The one beneath goes too: then the first one's own layer is merged into it. At last the first
        // one itself goes: what is based on it is merged into it, and it is nothing to compare with.
        let names = std::iter::once(&older).chain(&middle);
        for name in names.chain(std::iter::once(&first)) {
            ending.store(*name == first, Ordering::Release);
            let names = [name.clone()];
            engine.snapshot_delete("tank", "v", &names).unwrap();
            support::wait_jobs(engine);
        }
        over.store(true, Ordering::Release);
        looking.join().unwrap();
    });
    assert!(told(&client, number).is_err());
}

#[test]
fn what_is_deleted_is_not_compared_with_any_more() {
    let folder = Folder::new();
    let mut world = World::new(&folder, 1, 3);
    (0..20).for_each(|_| world.io());
    let engine = &world.engine;
    let take = |name: &str| {
        let volumes = ["v".to_owned()];
        engine.snapshot_create("tank", &volumes, name, 7).unwrap();
    };
    take("a");
    let client = Client::open(engine, "tank", "v");
    client.write(0, &[1; 4096]).unwrap();
    let bases = client.0.bases();
    let [(name, number)] = &bases[..] else {
        panic!("{bases:?}")
    };
    assert_eq!(name, "a");
    let ask = || {
        let answer = client.run(OpKind::Changed(*number), 0, MIB, IoBuf::empty(), false);
        answer.result.map(|()| answer.extents[0])
    };
    let found = ask().unwrap();
    assert_eq!((found.len, found.state), (4096, AllocationState::Changed));
    let of = |from, to, start, limit| {
        let answer = engine.snapshot_diff("tank", "v", from, to, start, limit);
        answer.map_err(|failed| failed.code)
    };
    assert_eq!(of(Some("b"), None, 0, 9), Err(ErrorCode::NotFound));
    assert_eq!(of(Some("a"), Some("b"), 0, 9), Err(ErrorCode::NotFound));
    assert_eq!(of(Some("a"), None, 0, 0), Err(ErrorCode::Invalid));
    assert_eq!(
        of(Some("a"), None, 1 << 20, 1 << 20),
        Err(ErrorCode::Invalid)
    );
    assert_eq!(of(Some("a"), None, 512, 9), Err(ErrorCode::Invalid));
    assert_eq!(
        of(Some("a"), None, SIZE + BLOCK, 9),
        Err(ErrorCode::Invalid)
    );
    assert_eq!(of(Some("a"), None, SIZE, 9).unwrap().ranges, []);
    engine.snapshot_delete("tank", "v", &["a".into()]).unwrap();
    support::wait_jobs(engine);
    assert_eq!(client.0.bases(), []);
    assert_eq!(of(Some("a"), None, 0, 9), Err(ErrorCode::NotFound));
    assert_eq!(ask().unwrap_err().kind, block::ErrorKind::Invalid);
    // The layer that has the name now may have the number of the one that bore it then.
    take("a");
    client.write(MIB, &[2; 4096]).unwrap();
    assert_eq!(ask().unwrap_err().kind, block::ErrorKind::Invalid);
    let found = of(Some("a"), None, 0, 9).unwrap().ranges;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].offset, found[0].len), (MIB, BLOCK));
}

#[test]
fn a_difference_of_many_chunks_has_all_of_them() {
    // Hundreds in each shard: many times the number scanned per query.
    for shards in [1, 2] {
        let folder = Folder::new();
        let mut world = World::new(&folder, shards, 1);
        let client = Client::open(&world.engine, "tank", "v");
        let blocks = |of: u64| (0..SIZE / MIB).map(move |chunk| chunk * 256 + (chunk + of) % 256);
        let write = |of: u64| {
            for block in blocks(of) {
                client
                    .write(block * BLOCK, &pattern(block, BLOCK as usize))
                    .unwrap();
            }
        };
        write(0);
        let snapshot = world.snapshot("v");
        write(7);
        let since = format!("v@{snapshot}");
        let all: BTreeMap<u64, bool> = blocks(0)
            .chain(blocks(7))
            .map(|block| (block, true))
            .collect();
        let new: BTreeMap<u64, bool> = blocks(7).map(|block| (block, true)).collect();
        for limit in [50, 10_000] {
            let found = collect(&world.engine, "v", None, None, limit).unwrap();
            assert!(found == all, "{} of {} blocks", found.len(), all.len());
            let found = collect(&world.engine, "v", Some(&since), None, limit).unwrap();
            assert!(found == new, "{} of {} blocks", found.len(), new.len());
        }
        let bases = client.0.bases();
        assert!(told(&client, bases[0].1).unwrap().iter().eq(new.keys()));
    }
}
