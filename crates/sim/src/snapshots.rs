//! Snapshots and clones in a run: taken under load, read, cloned, rolled back and deleted. Promoting is
//! in `promote.rs`, differences are in `diff.rs`, streams in `transfer.rs`.

use crate::client::Target;
use crate::content::SECTOR;
use crate::groups::Group;
use crate::oracle::{Oracle, Sector, Volume, Wrong};
use crate::plan::Bent;
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
pub const FIRST: u32 = 1 << 30;

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
    /// A volume is being rolled back: it is as it was, or as the snapshot.
    pub(crate) fn roll_back_begins(&mut self, volume: u32, snapshot: u32) {
        let other = self.volumes[&snapshot].clone();
        let Some(known) = self.volumes.get_mut(&volume) else {
            return;
        };
        known.size = known.size.min(other.size);
        let all = known.sectors.iter().chain(other.sectors.iter());
        let all: Vec<u64> = all.map(|(at, _)| at).collect();
        for at in all {
            let may = |volume: &Volume| volume.sectors.get(at).map_or_else(|| vec![0], Sector::any);
            let mut versions = may(known);
            versions.extend(may(&other));
            *known.sectors.get_or_zero(at) = Sector::of(versions);
        }
    }

    pub(crate) fn roll_back_ends(&mut self, volume: u32, snapshot: u32) {
        let mut now = self.volumes[&snapshot].clone();
        now.snapshot = None;
        now.bases.push(snapshot);
        self.volumes.insert(volume, now);
    }
}

impl Run {
    /// Something about snapshots.
    pub fn change_snapshots(&mut self) -> Step {
        let mostly = self.plan.scarce || self.plan.midway;
        let which = match mostly && self.random.one_in(2) {
            true => 0,
            false if self.plan.bent == Bent::Snapshots => *self.random.pick(&[0, 0, 4, 4, 17]),
            false => self.random.below(18),
        };
        match which {
            0..=3 if self.plan.scarce => self.take_many(),
            0..=3 => self.take_snapshot(),
            4..=6 => self.delete_snapshot(),
            7 => self.clone_snapshot(),
            8 => self.roll_back(),
            9 | 10 => self.promote(),
            11 | 12 => self.look_at_difference(),
            13..=16 => self.transfer(),
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

    pub fn take_snapshot(&mut self) -> Step {
        let most = if self.plan.scarce { MOST } else { MANY };
        if self.snapshots.len() + self.volumes.len() > most {
            return Ok(());
        }
        let mut of = self.volumes.clone();
        if self.random.one_in(2) {
            of = vec![self.random.pick(&of).clone()];
        }
        self.take_snapshot_of(of)
    }

    /// One snapshot, or several of one moment.
    pub fn take_snapshot_of(&mut self, of: Vec<(String, u32)>) -> Step {
        self.named += 1;
        let name = format!("s{}", self.named);
        let numbers: Vec<u32> = of.iter().map(|volume| volume.1).collect();
        self.client
            .oracle
            .borrow_mut()
            .snapshot_begins(&numbers, &name);
        let names: Vec<String> = of.into_iter().map(|volume| volume.0).collect();
        if self.plan.midway && self.random.one_in(2) {
            self.watch.cut_after(self.random.within(1..=100));
        }
        let asked = self.engine().snapshot_create(POOL, &names, &name, 1);
        let taken = self.client.oracle.borrow_mut().snapshot_ends();
        if let Some(left) = self.watch.take_left() {
            self.go_on_from(left)?;
            return self.delete_unknown(&name);
        }
        let full = |failed: &EngineError| failed.code == ErrorCode::NoSpace;
        if self.plan.scarce && asked.as_ref().is_err_and(full) {
            return Ok(());
        }
        if self.granted("no snapshot", asked)?.is_none() {
            return Ok(());
        }
        let Some((snapshots, given)) = taken else {
            return Ok(());
        };
        let mut numbers = BTreeMap::new();
        for (of, snapshot) in snapshots {
            self.named += 1;
            let number = FIRST + self.named as u32;
            self.snapshots.push(number);
            numbers.insert(of, number);
            let mut oracle = self.client.oracle.borrow_mut();
            if let Some(volume) = oracle.volumes.get_mut(&of) {
                volume.bases.push(number);
            }
            oracle.volumes.insert(number, snapshot);
        }
        self.groups.push(Group { given, numbers });
        if self.is_excused() || self.random.one_in(2) {
            return self.found();
        }
        self.read_snapshots()
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

    pub fn delete_snapshot(&mut self) -> Step {
        let Some((number, volume, _, name)) = self.any_snapshot() else {
            return Ok(());
        };
        if self.transfer.as_ref().is_some_and(|it| it.needs(number)) {
            return Ok(());
        }
        if self.clones.values().any(|of| *of == number) {
            let refused = self.engine().snapshot_delete(POOL, &volume, &[name]);
            return match refused {
                Err(_) => Ok(()),
                Ok(()) => Err(Wrong("a snapshot with clones was deleted".into())),
            };
        }
        self.delete(number)
    }

    /// Deletes a snapshot.
    pub fn delete(&mut self, number: u32) -> Step {
        self.snapshots.retain(|known| *known != number);
        let name = self.name_of(number);
        self.client.oracle.borrow_mut().volumes.remove(&number);
        let Some((volume, name)) = name.as_ref().and_then(|name| name.split_once('@')) else {
            return Ok(());
        };
        let deleted = self
            .engine()
            .snapshot_delete(POOL, volume, &[name.to_owned()]);
        self.granted("a snapshot cannot be deleted", deleted)
            .map(drop)
    }

    /// Deletes the snapshots of this name, which a power cut left, or did not.
    fn delete_unknown(&mut self, name: &str) -> Step {
        if self.lost {
            return Ok(());
        }
        let listed = self.engine().snapshot_list(POOL, None);
        let listed = self.granted("no list of snapshots", listed)?;
        for known in listed.into_iter().flatten() {
            if known.name == name {
                let name = [known.name];
                let deleted = self.engine().snapshot_delete(POOL, &known.volume, &name);
                self.granted("a snapshot cannot be deleted", deleted)?;
            }
        }
        Ok(())
    }

    pub fn clone_snapshot(&mut self) -> Step {
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
        known.bases.push(number);
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
        match self.any_snapshot() {
            Some((number, _, of, _)) if !self.is_receiving(of) => self.roll_back_to(number),
            _ => Ok(()),
        }
    }

    pub fn roll_back_to(&mut self, number: u32) -> Step {
        self.drain()?;
        let of = self.client.oracle.borrow().volumes[&number]
            .snapshot
            .clone();
        let Some((known, name)) = of else {
            return Ok(());
        };
        let Some(volume) = self.name_of(known) else {
            return Ok(());
        };
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
        let all = self.snapshots.clone();
        all.into_iter()
            .try_for_each(|number| self.read_snapshot(number))?;
        self.check_groups()
    }

    /// Reads all that a snapshot may have: from then on it is known.
    pub fn read_snapshot(&mut self, number: u32) -> Step {
        let Some(name) = self.name_of(number) else {
            return Ok(());
        };
        let device = self.engine().volume_open(POOL, &name, None);
        let device = device.map_err(|failed| Wrong(format!("{name} does not open: {failed}")))?;
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
        Ok(())
    }

    /// How the engine calls a volume, or a snapshot (VOLUME@NAME).
    pub fn name_of(&self, number: u32) -> Option<String> {
        let oracle = self.client.oracle.borrow();
        let snapshot = oracle.volumes.get(&number)?.snapshot.as_ref();
        let of = snapshot.map_or(number, |known| known.0);
        let (volume, _) = self.volumes.iter().find(|known| known.1 == of)?;
        Some(match snapshot {
            Some((_, name)) => format!("{volume}@{name}"),
            None => volume.clone(),
        })
    }
}
