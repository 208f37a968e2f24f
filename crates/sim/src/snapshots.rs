//! Snapshots and clones in a run: taken under load, read, cloned, rolled back and deleted. Promoting is
//! in `promote.rs`.

use crate::client::Target;
use crate::oracle::{Given, Oracle, SECTOR, Sector, Versions, Volume, Wrong};
use crate::run::{POOL, Run, Step};
use engine::harness::Harness;
use engine::{EngineError, ErrorCode};
use format::{PoolConfig, SnapshotConfig};
use std::collections::BTreeMap;

/// Snapshots at a time.
const MANY: usize = 12;
/// And where the metadata region is to fill.
const MOST: usize = 100;
/// The oracle's numbers of snapshots begin here.
const FIRST: u32 = 1 << 30;

/// A snapshot's entry, of its volume or of the one that is being promoted.
fn entry<'a>(config: &'a PoolConfig, known: &Volume) -> Option<&'a SnapshotConfig> {
    let (volume, name) = known.snapshot.as_ref()?;
    let of = |volume: u32| {
        let mut of = config.snapshots.iter().filter(|of| of.volume == volume);
        of.find(|of| of.name == *name)
    };
    of(*volume).or_else(|| of(known.moving?))
}

/// The number by which a volume or snapshot is read, and its size in bytes, if the pool has it.
pub fn find(config: &PoolConfig, number: u32, known: &Volume) -> Option<(u32, u64)> {
    if known.snapshot.is_none() {
        let found = config.volumes.iter().find(|volume| volume.id == number);
        return found.map(|found| (found.id, found.size));
    }
    let found = entry(config, known)?;
    Some((Harness::reader(found.layer), found.size))
}

/// How the tools call a volume or snapshot.
pub fn name(config: &PoolConfig, number: u32, known: &Volume) -> Option<String> {
    let (of, snapshot) = match &known.snapshot {
        Some((_, name)) => (entry(config, known)?.volume, Some(name)),
        None => (number, None),
    };
    let volume = config.volumes.iter().find(|volume| volume.id == of)?;
    Some(match snapshot {
        Some(snapshot) => format!("{}@{snapshot}", volume.name),
        None => volume.name.clone(),
    })
}

impl Oracle {
    /// A snapshot is asked for: what volumes have by now is in it.
    fn snapshot_begins(&mut self, volumes: &[u32]) -> BTreeMap<u32, Volume> {
        self.given = Some(Vec::new());
        let known = volumes
            .iter()
            .filter_map(|volume| Some((*volume, self.volumes.get(volume)?.clone())));
        known.collect()
    }

    /// It was taken: what was asked for meanwhile may be in it.
    fn snapshot_ends(
        &mut self,
        before: BTreeMap<u32, Volume>,
        name: &str,
    ) -> (Vec<Volume>, Vec<Given>) {
        let given = self.given.take().unwrap_or_default();
        let mut taken = Vec::new();
        for (number, volume) in before {
            let mut snapshot = Volume::of(volume.fill, volume.size);
            snapshot.snapshot = Some((number, name.to_owned()));
            let mut sectors: BTreeMap<u64, Versions> = volume
                .sectors
                .iter()
                .map(|(at, sector)| (*at, sector.possible()))
                .collect();
            for given in given.iter().filter(|given| given.volume == number) {
                for at in given.sectors.clone() {
                    sectors
                        .entry(at)
                        .or_insert_with(|| vec![0])
                        .push(given.version);
                }
            }
            let sectors = sectors
                .into_iter()
                .map(|(at, may_be)| (at, Sector::of(may_be)));
            snapshot.sectors = sectors.collect();
            taken.push(snapshot);
        }
        (taken, given)
    }

    /// Snapshots of one moment (by the volumes' numbers), which were read: what was answered before
    /// something was asked for that they have, they have as well.
    fn check_order(&self, given: &[Given], snapshots: &BTreeMap<u32, u32>) -> Result<(), Wrong> {
        let found = |given: &Given, at: u64| {
            let snapshot = self.volumes.get(snapshots.get(&given.volume)?)?;
            snapshot.sectors.get(&at)?.only()
        };
        let zeroed = |volume: u32, at: u64| {
            let mut zeroes = given.iter().filter(|other| other.version == 0);
            zeroes.any(|other| other.volume == volume && other.sectors.contains(&at))
        };
        let has = |given: &Given| {
            given.version != 0
                && given
                    .sectors
                    .clone()
                    .any(|at| found(given, at) == Some(given.version))
        };
        // Versions grow: an older one is what was there before.
        let lacks = |given: &Given| {
            given.version != 0
                && given.sectors.clone().any(|at| {
                    found(given, at).is_some_and(|found| found < given.version)
                        && !zeroed(given.volume, at)
                })
        };
        for early in given.iter().filter(|early| lacks(early)) {
            let Some(ended) = early.ended else { continue };
            if let Some(late) = given.iter().find(|late| late.after >= ended && has(late)) {
                return Err(Wrong(format!("a snapshot has {late:?} and not {early:?}")));
            }
        }
        Ok(())
    }

    /// A volume is being rolled back: it is as it was, or as the snapshot.
    fn roll_back_begins(&mut self, volume: u32, snapshot: u32) {
        let other = self.volumes[&snapshot].clone();
        let Some(known) = self.volumes.get_mut(&volume) else {
            return;
        };
        known.size = known.size.min(other.size);
        let all: Vec<u64> = known
            .sectors
            .keys()
            .chain(other.sectors.keys())
            .copied()
            .collect();
        for at in all {
            let may =
                |volume: &Volume| volume.sectors.get(&at).map_or_else(|| vec![0], Sector::any);
            let mut versions = may(known);
            versions.extend(may(&other));
            known.sectors.insert(at, Sector::of(versions));
        }
    }

    fn roll_back_ends(&mut self, volume: u32, snapshot: u32) {
        let mut now = self.volumes[&snapshot].clone();
        now.snapshot = None;
        self.volumes.insert(volume, now);
    }
}

impl Run {
    /// Something about snapshots.
    pub fn change_snapshots(&mut self) -> Step {
        let which = match self.plan.scarce && self.random.one_in(2) {
            true => 0,
            false => self.random.below(12),
        };
        match which {
            0..=3 if self.plan.scarce => self.take_many(),
            0..=3 => self.take_snapshot(),
            4..=6 => self.delete_snapshot(),
            7 => self.clone_snapshot(),
            8 => self.roll_back(),
            9 | 10 => self.promote(),
            _ => self.read_snapshots(),
        }
    }

    /// Snapshots one after the other, each with something written since.
    fn take_many(&mut self) -> Step {
        for _ in 0..self.random.within(1..=MOST as u64) {
            self.take_snapshot()?;
            self.storm()?;
        }
        Ok(())
    }

    fn take_snapshot(&mut self) -> Step {
        let most = if self.plan.scarce { MOST } else { MANY };
        if self.snapshots.len() + self.volumes.len() > most {
            return Ok(());
        }
        let mut of = self.volumes.clone();
        if self.random.one_in(2) {
            of = vec![self.random.pick(&of).clone()];
        }
        self.named += 1;
        let name = format!("s{}", self.named);
        let numbers: Vec<u32> = of.iter().map(|volume| volume.1).collect();
        let before = self.client.oracle.borrow_mut().snapshot_begins(&numbers);
        let names: Vec<String> = of.into_iter().map(|volume| volume.0).collect();
        let asked = self.engine().snapshot_create(POOL, &names, &name, 1);
        let (taken, given) = self.client.oracle.borrow_mut().snapshot_ends(before, &name);
        let full = |failed: &EngineError| failed.code == ErrorCode::NoSpace;
        if self.plan.scarce && asked.as_ref().is_err_and(full) {
            return Ok(());
        }
        if self.granted("no snapshot", asked)?.is_none() {
            return Ok(());
        }
        let mut numbers = BTreeMap::new();
        for snapshot in taken {
            self.named += 1;
            let number = FIRST + self.named as u32;
            self.snapshots.push(number);
            numbers.extend(snapshot.snapshot.iter().map(|known| (known.0, number)));
            self.client
                .oracle
                .borrow_mut()
                .volumes
                .insert(number, snapshot);
        }
        if self.is_excused() || self.random.one_in(2) {
            return self.found();
        }
        self.read_snapshots()?;
        self.found()?;
        self.client.oracle.borrow().check_order(&given, &numbers)
    }

    /// A snapshot: its number, its volume's name and number, and its own name.
    fn any_snapshot(&mut self) -> Option<(u32, String, u32, String)> {
        if self.snapshots.is_empty() {
            return None;
        }
        let number = *self.random.pick(&self.snapshots);
        let (volume, name) = self.client.oracle.borrow().volumes[&number]
            .snapshot
            .clone()?;
        let known = self.volumes.iter().find(|known| known.1 == volume)?;
        Some((number, known.0.clone(), volume, name))
    }

    /// Whether a volume has snapshots.
    pub fn has_snapshots(&self, volume: u32) -> bool {
        let oracle = self.client.oracle.borrow();
        let of = |number: &u32| {
            oracle.volumes[number]
                .snapshot
                .as_ref()
                .map(|known| known.0)
        };
        self.snapshots
            .iter()
            .any(|number| of(number) == Some(volume))
    }

    fn delete_snapshot(&mut self) -> Step {
        let Some((number, volume, _, name)) = self.any_snapshot() else {
            return Ok(());
        };
        if self.clones.values().any(|of| *of == number) {
            let refused = self.engine().snapshot_delete(POOL, &volume, &[name]);
            return match refused {
                Err(_) => Ok(()),
                Ok(()) => Err(Wrong("a snapshot with clones was deleted".into())),
            };
        }
        self.snapshots.retain(|known| *known != number);
        self.client.oracle.borrow_mut().volumes.remove(&number);
        let deleted = self.engine().snapshot_delete(POOL, &volume, &[name]);
        self.granted("a snapshot cannot be deleted", deleted)
            .map(drop)
    }

    fn clone_snapshot(&mut self) -> Step {
        let Some((number, volume, _, name)) = self.any_snapshot() else {
            return Ok(());
        };
        if self.volumes.len() >= 4 {
            return Ok(());
        }
        self.named += 1;
        let clone = format!("c{}", self.named);
        let made = self.engine().snapshot_clone(POOL, &volume, &name, &clone);
        let Some(made) = self.granted("no clone", made)? else {
            return Ok(());
        };
        let mut known = self.client.oracle.borrow().volumes[&number].clone();
        known.snapshot = None;
        self.client
            .oracle
            .borrow_mut()
            .volumes
            .insert(made.id, known);
        self.clones.insert(made.id, number);
        self.volumes.push((clone, made.id));
        self.open_volume(self.volumes.len() - 1)
    }

    fn roll_back(&mut self) -> Step {
        let Some((number, volume, known, name)) = self.any_snapshot() else {
            return Ok(());
        };
        self.drain()?;
        self.client
            .oracle
            .borrow_mut()
            .roll_back_begins(known, number);
        let asked = self.engine().volume_roll_back(POOL, &volume, &name);
        if self.granted("it cannot be rolled back", asked)?.is_some() {
            self.client
                .oracle
                .borrow_mut()
                .roll_back_ends(known, number);
            self.learn_clones()?;
        }
        Ok(())
    }

    /// Every snapshot holds what it did.
    pub fn read_snapshots(&mut self) -> Step {
        self.drain()?;
        for number in self.snapshots.clone() {
            let snapshot = self.client.oracle.borrow().volumes[&number]
                .snapshot
                .clone();
            let Some((volume, name)) = snapshot else {
                continue;
            };
            let Some(volume) = self.volumes.iter().find(|known| known.1 == volume) else {
                continue;
            };
            let name = format!("{}@{name}", volume.0);
            let device = self.engine().volume_open(POOL, &name);
            let device =
                device.map_err(|failed| Wrong(format!("{name} does not open: {failed}")))?;
            self.client.add(Target {
                volume: number,
                fill: 0,
                least: u64::from(device.geometry().lba_size) / SECTOR as u64,
                device,
                chunks: self.plan.chunks.to_vec(),
                blocks: self.plan.blocks,
                still: true,
            });
            self.client.read_all(number);
            self.drain()?;
            self.client.remove(number);
        }
        Ok(())
    }
}
