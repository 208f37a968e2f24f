//! Differences that are requested in a run: they must name all changed blocks, and none that was not written.

use crate::client::USUAL;
use crate::oracle::{Oracle, Sector, Volume, Wrong};
use crate::run::{POOL, Run, Step};
use engine::ChangedRange;
use std::collections::{BTreeMap, BTreeSet};
use units::BLOCK;

/// Ranges that are requested at a time.
pub const LIMITS: [usize; 4] = [1, 7, 100, 65_536];

/// Versions that a sector may have.
fn versions(volume: &Volume, at: u64) -> &[u32] {
    volume.sectors.get(at).map_or(&[0], Sector::current)
}

/// Whether a sector surely has something else in one than in the other.
fn is_other(one: &Volume, other: &Volume, at: u64) -> bool {
    let (before, after) = (versions(one, at), versions(other, at));
    !before.iter().any(|version| after.contains(version))
}

impl Oracle {
    /// Blocks that are named, each with whether it holds data, as what `to` has from `start` (a block) on
    /// otherwise than `from`, or than nothing: those that differ are, and others only when something
    /// changed them since.
    fn check_difference(
        &self,
        (from, to): (Option<u32>, u32),
        start: u64,
        named: &BTreeMap<u64, bool>,
    ) -> Result<(), Wrong> {
        let nothing = Volume::default();
        let from = from.map_or(&nothing, |from| &self.volumes[&from]);
        let to = &self.volumes[&to];
        let written = from.sectors.blocks().chain(to.sectors.blocks());
        let known = written.filter(|block| *block >= start);
        let all: BTreeSet<u64> = known.chain(named.keys().copied()).collect();
        for block in all {
            let mut sectors = block * 8..(block + 1) * 8;
            let differs = sectors.clone().any(|at| is_other(from, to, at));
            let changed = to.changed.get(&block).is_some_and(|at| *at > from.taken);
            match named.get(&block) {
                None if differs && block * (BLOCK as u64) < to.size => {
                    return Err(Wrong(format!("block {block} differs and is not named")));
                }
                Some(_) if !differs && !changed => {
                    return Err(Wrong(format!(
                        "block {block} is named, and nobody wrote it"
                    )));
                }
                Some(false) if !sectors.all(|at| versions(to, at).contains(&0)) => {
                    return Err(Wrong(format!("block {block} is said to be zeroes")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a volume surely is not as a snapshot was.
    pub(crate) fn differs(&self, from: u32, to: u32) -> bool {
        let (from, to) = (&self.volumes[&from], &self.volumes[&to]);
        let mut blocks = from.sectors.blocks().chain(to.sectors.blocks());
        blocks.any(|block| {
            let mut sectors = block * 8..(block + 1) * 8;
            block * (BLOCK as u64) < to.size && sectors.any(|at| is_other(from, to, at))
        })
    }

    /// Snapshots that still exist, and that a volume or snapshot is based on.
    pub(crate) fn bases(&self, number: u32) -> Vec<u32> {
        let known = self.volumes.get(&number);
        let mut bases = known.map_or_else(Vec::new, |known| known.bases.clone());
        bases.retain(|base| self.volumes.contains_key(base));
        bases
    }
}

/// Blocks of ranges, which come in order.
fn add_blocks(
    ranges: &[ChangedRange],
    end: u64,
    named: &mut BTreeMap<u64, bool>,
) -> Result<(), Wrong> {
    for range in ranges {
        let first = range.offset / BLOCK as u64;
        let after = named.last_key_value().map_or(0, |(last, _)| last + 1);
        if first < after || range.len == 0 || range.offset + range.len > end {
            return Err(Wrong(format!(
                "{range:?} after block {after} of {end} bytes"
            )));
        }
        let blocks = first..first + range.len / BLOCK as u64;
        named.extend(blocks.map(|block| (block, range.data)));
    }
    Ok(())
}

impl Run {
    /// A snapshot under load, or a volume that is held still, is compared with a snapshot that it stands
    /// on, or with nothing.
    pub fn look_at_difference(&mut self) -> Step {
        if self.watch.alone || self.is_excused() {
            return Ok(());
        }
        let volumes = self.volumes.iter().map(|volume| volume.1);
        let all: Vec<u32> = self.snapshots.iter().copied().chain(volumes).collect();
        let to = *self.random.pick(&all);
        let bases = self.client.oracle.borrow().bases(to);
        let from = match bases.is_empty() || self.random.one_in(8) {
            true => None,
            false => Some(*self.random.pick(&bases)),
        };
        self.drain()?;
        for number in from.into_iter().chain([to]) {
            match self.snapshots.contains(&number) {
                true => self.read_snapshot(number)?,
                false => self.client.read_all(number),
            }
        }
        self.drain()?;
        if self.snapshots.contains(&to) {
            self.load_for(1..=100, USUAL)?;
        }
        let size = self.client.oracle.borrow().volumes[&to].size;
        let start = match self.random.one_in(4) {
            true => self.random.below(size / BLOCK as u64),
            false => 0,
        };
        let limit = *self.random.pick(&LIMITS);
        let Some(named) = self.difference(from, to, start, limit)? else {
            return Ok(());
        };
        self.outcome.differences += 1;
        let checked = {
            let oracle = self.client.oracle.borrow();
            oracle.check_difference((from, to), start, &named)
        };
        let names = [from, Some(to)].map(|number| self.name_of(number?));
        checked.map_err(|Wrong(what)| Wrong(format!("difference of {names:?}: {what}")))
    }

    /// Every block that the engine names, with whether it holds data.
    fn difference(
        &mut self,
        from: Option<u32>,
        to: u32,
        start: u64,
        limit: usize,
    ) -> Result<Option<BTreeMap<u64, bool>>, Wrong> {
        let from = from.and_then(|from| self.name_of(from));
        let Some(to) = self.name_of(to) else {
            return Ok(None);
        };
        let (volume, snapshot) = match to.split_once('@') {
            Some((volume, snapshot)) => (volume, Some(snapshot)),
            None => (&to[..], None),
        };
        let mut named = BTreeMap::new();
        let mut next = Some(start * BLOCK as u64);
        while let Some(at) = next {
            let (from, engine) = (from.as_deref(), self.engine());
            let part = engine.snapshot_diff(POOL, volume, from, snapshot, at, limit);
            let part = part
                .map_err(|failed| Wrong(format!("{to} is not compared with {from:?}: {failed}")))?;
            add_blocks(&part.ranges, part.size, &mut named)?;
            if part.next.is_some_and(|next| next <= at) {
                return Err(Wrong(format!("a difference goes on at {:?}", part.next)));
            }
            next = part.next;
        }
        Ok(Some(named))
    }
}
