//! Snapshots of several volumes at one moment, while each write to one waits for one to another: what
//! a snapshot has of one volume is consistent with the others.

use crate::client::{SAFE, UNFLUSHED, USUAL};
use crate::oracle::{Given, Oracle, Sector, Taking, Versions, Volume, Wrong};
use crate::run::{Run, Step};
use std::collections::BTreeMap;

/// Volumes of a group.
const VOLUMES: u64 = 8;
/// Writes in progress of which each waits for the one before, on another volume.
const CHAINS: u64 = 4;
/// Groups at a time.
const MANY: usize = 4;

/// Snapshots of one moment that were not examined yet.
pub struct Group {
    /// Operations meanwhile.
    pub given: Vec<Given>,
    /// By the volumes' numbers.
    pub numbers: BTreeMap<u32, u32>,
}

/// Content of volumes when a snapshot was begun, and changes meanwhile that it may include.
fn models(taking: &Taking, given: &[Given], now: u64) -> BTreeMap<u32, Volume> {
    let model = |(number, volume): (&u32, &Volume)| {
        let mut snapshot = Volume::of(volume.fill, volume.size);
        snapshot.snapshot = Some((*number, taking.name.clone()));
        (snapshot.bases, snapshot.taken) = (volume.bases.clone(), volume.taken);
        snapshot.changed = volume.changed.clone();
        // What is in progress may be written before or after the moment that counts.
        let open = |(at, sector): (u64, &Sector)| sector.is_open().then_some((at / 8, now));
        let open = volume.sectors.iter().filter_map(open);
        snapshot.changed.extend(open);
        let known = volume.sectors.iter();
        let mut sectors: BTreeMap<u64, Versions> =
            known.map(|(at, sector)| (at, sector.possible())).collect();
        for given in given.iter().filter(|given| given.volume == *number) {
            for at in given.sectors.clone() {
                snapshot.changed.insert(at / 8, now);
                let sector = sectors.entry(at).or_insert_with(|| vec![0]);
                sector.push(given.version);
            }
        }
        let sectors = sectors.into_iter();
        snapshot.sectors = sectors
            .map(|(at, may_be)| (at, Sector::of(may_be)))
            .collect();
        (*number, snapshot)
    };
    taking.before.iter().map(model).collect()
}

impl Oracle {
    /// A snapshot is requested: what volumes have by now is in it.
    pub(crate) fn snapshot_begins(&mut self, volumes: &[u32], name: &str) {
        let taken = self.moment();
        let known = volumes.iter().filter_map(|number| {
            let mut volume = self.volumes.get(number)?.clone();
            volume.taken = taken;
            Some((*number, volume))
        });
        self.taking = Some(Taking {
            name: name.to_owned(),
            before: known.collect(),
            given: self.open.values().cloned().collect(),
        });
    }

    /// It was taken, or not: what was requested meanwhile may be in it.
    pub(crate) fn snapshot_ends(&mut self) -> Option<(BTreeMap<u32, Volume>, Vec<Given>)> {
        let taking = self.taking.take()?;
        let taken = models(&taking, &taking.given, self.moment());
        Some((taken, taking.given))
    }

    /// Snapshots that are being taken as they have to be when a label names them: volumes of an oracle
    /// of their own, with the same numbers.
    pub(crate) fn being_taken(&self) -> Option<(Self, &Taking)> {
        let taking = self.taking.as_ref()?;
        let mut oracle = Self::default();
        oracle.volumes = models(taking, &taking.given, self.moment());
        (oracle.hits, oracle.wild) = (self.hits.clone(), self.wild);
        oracle.state_hits = self.state_hits.clone();
        Some((oracle, taking))
    }

    /// Snapshots of one moment (by the volumes' numbers), which were read: what was answered before
    /// something was requested that they have, they have as well. Returns whether they have something of it
    /// all and lack something.
    pub(crate) fn check_order(
        &self,
        given: &[Given],
        snapshots: &BTreeMap<u32, u32>,
    ) -> Result<bool, Wrong> {
        let found = |given: &Given, at: u64| {
            let snapshot = self.volumes.get(snapshots.get(&given.volume)?)?;
            snapshot.sectors.get(at)?.only()
        };
        let zeroes: Vec<&Given> = given.iter().filter(|other| other.version == 0).collect();
        let zeroed = |volume: u32, at: u64| {
            let mut zeroes = zeroes.iter();
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
        // Each is checked once: there may be thousands.
        let had: Vec<&Given> = given.iter().filter(|given| has(given)).collect();
        let newest = had.iter().map(|late| late.after).max();
        let is_early = |early: &&Given| early.ended.is_some_and(|ended| Some(ended) <= newest);
        if let Some(early) = given.iter().filter(is_early).find(|early| lacks(early)) {
            let late = had.iter().find(|late| Some(late.after) >= early.ended);
            return Err(Wrong(format!("a snapshot has {late:?} and not {early:?}")));
        }
        Ok(!had.is_empty() && given.iter().any(lacks))
    }
}

impl Run {
    /// Snapshots of one moment that were read are examined together.
    pub fn check_groups(&mut self) -> Step {
        self.found()?;
        let groups = std::mem::take(&mut self.groups);
        if self.is_excused() {
            return Ok(());
        }
        let oracle = self.client.oracle.borrow();
        for Group { given, numbers } in groups {
            let mut all = numbers.values();
            if !all.all(|number| oracle.volumes.contains_key(number)) {
                continue;
            }
            let between = oracle.check_order(&given, &numbers)?;
            self.outcome.groups += u64::from(numbers.len() > 1);
            self.outcome.between += u64::from(numbers.len() > 1 && between);
        }
        Ok(())
    }

    /// A run of group snapshots alone: volumes on all shards, writes that depend on one another, loops
    /// that stand still in the middle, power cuts.
    pub fn live_in_groups(&mut self) -> Step {
        for _ in 0..VOLUMES {
            self.create_volume()?;
        }
        self.client.set_chains(CHAINS);
        self.fault(true);
        loop {
            for _ in 0..self.random.within(1..=16) {
                self.load_chains()?;
                self.take_snapshot_of(self.volumes.clone())?;
                self.outcome.changes += 1;
                self.delete_oldest()?;
                if self.is_over() {
                    return self.finish();
                }
            }
            self.load_chains()?;
            self.end_life()?;
        }
    }

    /// Chains for a while, and a little of everything else.
    fn load_chains(&mut self) -> Step {
        self.world.stumble();
        let mix = *self.random.pick(&[USUAL, SAFE, UNFLUSHED]);
        self.client.mix.set(mix);
        self.client.pace.set(self.random.within(4..=16));
        self.client.depth.set(self.random.within(6..=12) as usize);
        let steps = self.random.within(20..=400);
        self.steps(steps)
    }

    fn delete_oldest(&mut self) -> Step {
        while self.snapshots.len() > MANY * VOLUMES as usize {
            let number = self.snapshots[0];
            self.delete(number)?;
        }
        self.work();
        self.found()
    }
}
