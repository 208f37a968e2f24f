//! The valid contents of every sector of every volume, according to docs/fault-model.md.
//!
//! The data of a read identifies the write that it came from (`content`).

use crate::content::{SECTOR, SECTORS, Sectors, version_of};
use crate::policies::Policies;
use crate::reserve::Reservations;
pub use crate::sectors::Versions;
pub(crate) use crate::sectors::{Sector, SectorMap};
use crate::young::Young;
use std::collections::{BTreeMap, BTreeSet};
use units::BLOCK;

/// A change that was requested.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub id: u64,
    pub volume: u32,
    pub sectors: std::ops::Range<u64>,
    pub version: u32,
    /// Completions before it was requested, and with its own.
    pub after: u64,
    pub ended: Option<u64>,
}

/// Snapshots that are being taken, all at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Taking {
    /// Their name.
    pub name: String,
    /// The volumes as they were when that began.
    pub before: BTreeMap<u32, Volume>,
    /// Operations in flight at that time, and later ones.
    pub given: Vec<Given>,
}

/// A volume that receives a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Copying {
    pub volume: u32,
    /// Its future content.
    pub of: u32,
    /// The snapshot's name then.
    pub name: String,
    /// Bytes, from the first one on, that the pool has to say are there, at least and at most.
    pub done: (u64, u64),
}

/// One volume.
#[derive(Clone, Debug, Default)]
pub struct Volume {
    /// Bytes that are sure to be there: the least that any answer has promised.
    pub size: u64,
    /// The volume that its content names: the first one of its family.
    pub fill: u32,
    /// It is a snapshot: the volume's number, and the name.
    pub snapshot: Option<(u32, String)>,
    /// A volume that is being promoted, whose it may be by now.
    pub moving: Option<u32>,
    /// Snapshots that it is based on, by number, oldest first; some may be gone.
    pub bases: Vec<u32>,
    /// It is a snapshot: the moment at which it was requested.
    pub taken: u64,
    pub(crate) sectors: SectorMap,
    /// Blocks that are compared in every state.
    young: Young,
    /// Every block that was ever changed, with the moment of the last beginning or end of a change.
    pub(crate) changed: BTreeMap<u64, u64>,
}

impl Volume {
    /// A new one of `size` bytes, whose content names `fill`.
    pub fn of(fill: u32, size: u64) -> Self {
        Self {
            size,
            fill,
            ..Self::default()
        }
    }
}

/// All volumes that exist for sure, by number.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// By number.
    pub volumes: BTreeMap<u32, Volume>,
    /// Blocks (volume, block) whose data a drive lost or damaged where nothing else has it: they
    /// may be unreadable, or as old as they please, but nothing else.
    pub hits: BTreeSet<(u32, u64)>,
    /// The same of the state that is examined alone.
    pub state_hits: BTreeSet<(u32, u64)>,
    /// Blocks that a drive did not take.
    pub refused: BTreeSet<(u32, u64)>,
    /// Reservations of volumes.
    pub reservations: Reservations,
    /// Policies of volumes.
    pub policies: Policies,
    /// Metadata without a copy was hit: the same goes for all.
    pub wild: bool,
    /// Snapshots that are being taken.
    pub(crate) taking: Option<Taking>,
    /// Changes that are in progress.
    pub(crate) open: BTreeMap<u64, Given>,
    /// A volume that is being made as a snapshot is.
    pub(crate) copying: Option<Copying>,
    ended: u64,
    next: u64,
    version: u32,
}

/// Found content that is not valid.
#[derive(Clone, Debug)]
pub struct Wrong(pub String);

impl Oracle {
    /// A version that was never used.
    pub fn version(&mut self) -> u32 {
        self.version += 1;
        self.version
    }

    /// Grows with every operation that begins or ends.
    pub(crate) fn moment(&self) -> u64 {
        self.next + self.ended
    }

    /// An operation begins to give these sectors this version (0: zeroes); returns its number.
    /// With `perhaps`, they may keep what they had even when it succeeds.
    pub fn begin(
        &mut self,
        volume: u32,
        sectors: std::ops::Range<u64>,
        version: u32,
        perhaps: bool,
    ) -> u64 {
        let id = self.next + 1;
        let given = Given {
            id,
            volume,
            sectors: sectors.clone(),
            version,
            after: self.ended,
            ended: None,
        };
        if let Some(taking) = &mut self.taking {
            taking.given.push(given.clone());
        }
        self.open.insert(id, given);
        self.begin_each(volume, sectors, perhaps, |_| version)
    }

    /// The same, of content that was read elsewhere: from sector `first` on.
    pub fn begin_copy(&mut self, volume: u32, first: u64, bytes: &[u8]) -> u64 {
        let fill = self.fill(volume);
        let versions = (first..).zip(bytes.chunks_exact(SECTOR));
        let versions: Versions = versions
            .map(|(at, bytes)| version_of(fill, at, bytes).unwrap_or(0))
            .collect();
        let end = first + versions.len() as u64;
        self.begin_each(volume, first..end, false, |at| {
            versions[(at - first) as usize]
        })
    }

    fn begin_each(
        &mut self,
        volume: u32,
        sectors: std::ops::Range<u64>,
        perhaps: bool,
        version: impl Fn(u64) -> u32,
    ) -> u64 {
        self.next += 1;
        let (id, now) = (self.next, self.moment());
        let Some(volume) = self.volumes.get_mut(&volume) else {
            return id;
        };
        let blocks = sectors.start / 8..sectors.end.div_ceil(8);
        volume.young.touch(blocks.clone(), id);
        volume.changed.extend(blocks.map(|block| (block, now)));
        for at in sectors {
            let sector = volume.sectors.get_or_zero(at);
            let mut may_be = vec![version(at)];
            if perhaps {
                may_be.extend(sector.current());
            }
            sector.issue(id, may_be);
            volume.young.unsettle(at);
        }
        id
    }

    /// The operation has ended. After an error its sectors may be old or new; with `durable` they
    /// are safe.
    pub fn end(
        &mut self,
        volume: u32,
        sectors: std::ops::Range<u64>,
        id: u64,
        worked: bool,
        durable: bool,
    ) {
        self.ended += 1;
        let ended = self.ended;
        self.open.remove(&id);
        let given = self.taking.iter_mut().flat_map(|taking| &mut taking.given);
        let given = given.filter(|given| given.id == id && worked);
        given.for_each(|given| given.ended = Some(ended));
        let now = self.moment();
        let Some(volume) = self.volumes.get_mut(&volume) else {
            return;
        };
        let blocks = sectors.start / 8..sectors.end.div_ceil(8);
        volume.changed.extend(blocks.map(|block| (block, now)));
        for at in sectors {
            let Some(sector) = volume.sectors.get_mut(at) else {
                continue;
            };
            if sector.end(id, ended, worked) && worked && durable {
                sector.settle(ended);
                if sector.is_settled() {
                    volume.young.settle(at);
                }
            }
        }
    }

    /// The volume that a volume's content names.
    pub fn fill(&self, volume: u32) -> u32 {
        self.volumes.get(&volume).map_or(volume, |known| known.fill)
    }

    /// Whether a block may be unreadable or old.
    pub fn is_hit(&self, volume: u32, block: u64) -> bool {
        let at = (self.fill(volume), block);
        self.wild || self.hits.contains(&at) || self.state_hits.contains(&at)
    }

    /// Whether an operation on these sectors may fail; one that changes them also where a drive did
    /// not take them.
    pub fn may_fail(&self, volume: u32, sectors: &std::ops::Range<u64>, changes: bool) -> bool {
        let mut blocks = sectors.start / 8..sectors.end.div_ceil(8);
        blocks.any(|block| {
            let at = (self.fill(volume), block);
            self.is_hit(volume, block) || changes && self.refused.contains(&at)
        })
    }

    /// A flush begins: it covers what has ended by now.
    pub fn flush_begins(&self) -> u64 {
        self.ended
    }

    /// The flush that began at `moment` has succeeded.
    pub fn flush_ends(&mut self, volume: u32, moment: u64) {
        let Some(volume) = self.volumes.get_mut(&volume) else {
            return;
        };
        let sectors = &mut volume.sectors;
        volume.young.settle_all_but(|at| {
            let Some(sector) = sectors.get_mut(at) else {
                return false;
            };
            sector.settle(moment);
            !sector.is_settled()
        });
    }

    /// After a crash, what was found is what is there: it may still be lost until a flush.
    fn forget_in_flight(&mut self) {
        let now = self.next;
        self.open.clear();
        for volume in self.volumes.values_mut() {
            volume.young.forget_in_flight(now);
            volume.sectors.each_unclear(Sector::forget_order);
        }
    }

    /// After a power cut at a moment at which `then` was known, if not what is known now.
    pub fn power_went(&mut self, then: Option<Self>, lied: BTreeSet<(u32, u64)>) {
        if let Some(then) = then {
            let version = self.version;
            *self = then;
            // None is used for two things.
            self.version = version;
            self.taking = None;
        }
        self.forget_in_flight();
        self.hits.extend(lied);
    }

    /// After the end of only the engine: acknowledged writes stay, those in flight may have
    /// happened.
    pub fn killed(&mut self) {
        self.ended += 1;
        self.open.clear();
        for volume in self.volumes.values_mut() {
            let ended = self.ended;
            volume.sectors.each_unclear(|sector| sector.stop(ended));
        }
    }

    /// The same at a moment at which `then` was known.
    pub fn killed_at(&mut self, then: Self) {
        let version = self.version;
        *self = then;
        // None is used for two things.
        self.version = version;
        self.taking = None;
        self.killed();
    }

    /// Whether something was written since.
    pub fn written_since(&self, then: &Self) -> bool {
        self.version > then.version
    }

    /// The volume is cut to `size` bytes: the part beyond no longer exists.
    pub fn cut(&mut self, volume: u32, size: u64) {
        if let Some(volume) = self.volumes.get_mut(&volume) {
            let first = size / SECTOR as u64;
            volume.size = volume.size.min(size);
            volume.sectors.cut(first);
            volume.young.cut(first);
        }
    }

    /// Checks bytes that a read gave, with nothing in flight there.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_live(&self, volume: u32, offset: u64, bytes: &[u8]) -> Result<(), Wrong> {
        self.check(volume, offset, bytes, |sector, found| {
            sector.current().contains(&found)
        })
    }

    /// Content of a sector without operations in flight.
    pub fn current(&self, volume: u32, at: u64) -> Versions {
        let sector = self
            .volumes
            .get(&volume)
            .and_then(|known| known.sectors.get(at));
        sector.map_or_else(|| vec![0], |sector| sector.current().to_vec())
    }

    /// Content of these sectors with and without operations in flight.
    pub fn under_way(&self, volume: u32, sectors: std::ops::Range<u64>) -> BTreeMap<u64, Versions> {
        let Some(known) = self.volumes.get(&volume) else {
            return BTreeMap::new();
        };
        let open = |(at, sector): (u64, &Sector)| sector.is_open().then(|| (at, sector.possible()));
        known.sectors.range(sectors).filter_map(open).collect()
    }

    /// As [`Oracle::check_live`], with what else sectors may hold that were being written
    /// meanwhile; of several versions that a sector may have, the one that was found is the one
    /// that it has.
    ///
    /// # Errors
    /// The first fault.
    pub fn settle_live(
        &mut self,
        volume: u32,
        offset: u64,
        bytes: &[u8],
        also: &BTreeMap<u64, Versions>,
    ) -> Result<(), Wrong> {
        let base = offset / SECTOR as u64;
        let (mut from, end) = (base, base + (bytes.len() / SECTOR) as u64);
        let part = |from: u64, to: u64| {
            &bytes[(from - base) as usize * SECTOR..(to - base) as usize * SECTOR]
        };
        for (at, versions) in also {
            self.check_live(volume, from * SECTOR as u64, part(from, *at))?;
            self.check(
                volume,
                at * SECTOR as u64,
                part(*at, at + 1),
                |sector, found| versions.contains(&found) || sector.current().contains(&found),
            )?;
            from = at + 1;
        }
        self.check_live(volume, from * SECTOR as u64, part(from, end))?;
        let Some(known) = self.volumes.get_mut(&volume) else {
            return Ok(());
        };
        let first = offset / SECTOR as u64;
        for (at, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            if also.contains_key(&at) {
                continue;
            }
            let Some(found) = version_of(known.fill, at, bytes) else {
                continue;
            };
            // Where there is but one, it is the one.
            let only = known
                .sectors
                .get(at)
                .is_none_or(|sector| sector.only() == Some(found));
            if let (false, Some(sector)) = (only, known.sectors.get_mut(at)) {
                sector.found(found);
            }
        }
        Ok(())
    }

    /// Checks bytes that were read after a crash.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_crashed(&self, volume: u32, offset: u64, bytes: &[u8]) -> Result<(), Wrong> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        if !offset.is_multiple_of(BLOCK as u64) || !rest.is_empty() {
            return self.check(volume, offset, bytes, Sector::may_be);
        }
        for (block, bytes) in (offset / BLOCK as u64..).zip(blocks) {
            // Mostly it fits as a whole; what does not is examined sector by sector.
            let found = Sectors::of(bytes);
            if !found.is_some_and(|found| self.fits(volume, block, &found)) {
                self.check(volume, block * BLOCK as u64, bytes, Sector::may_be)?;
            }
        }
        Ok(())
    }

    /// Whether a block may hold this after a crash: what [`Oracle::check_crashed`] would say, except where a block
    /// may also be old.
    pub fn fits(&self, volume: u32, block: u64, found: &Sectors) -> bool {
        let Some(known) = self.volumes.get(&volume) else {
            return true;
        };
        found.is_of(known.fill, block) && Self::fit(known, block, found.versions)
    }

    /// The same of zeroes.
    pub fn fits_zeroes(&self, volume: u32, block: u64) -> bool {
        let known = self.volumes.get(&volume);
        known.is_none_or(|known| Self::fit(known, block, [0; SECTORS]))
    }

    fn fit(known: &Volume, block: u64, versions: [u32; SECTORS]) -> bool {
        known.sectors.fits(block, versions)
    }

    fn check(
        &self,
        volume: u32,
        offset: u64,
        bytes: &[u8],
        may: impl Fn(&Sector, u32) -> bool,
    ) -> Result<(), Wrong> {
        let Some(known) = self.volumes.get(&volume) else {
            return Ok(());
        };
        let first = offset / SECTOR as u64;
        for (at, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            let found = version_of(known.fill, at, bytes);
            let sector = known.sectors.get(at);
            let fits = match (found, sector) {
                (Some(found), Some(sector)) => may(sector, found),
                (Some(found), None) => found == 0,
                (None, _) => false,
            };
            let old = found.is_some() && self.is_hit(volume, at / 8);
            if !(fits || old) {
                let head: Vec<u64> = bytes
                    .chunks_exact(8)
                    .take(2)
                    .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
                    .collect();
                return Err(Wrong(format!(
                    "volume {volume}, sector {at}: found {found:?} ({head:x?}), known {sector:?}"
                )));
            }
        }
        Ok(())
    }

    /// Ranges (first block, blocks) of 4 KiB blocks of a volume that were ever written, each at
    /// most `longest` blocks and within one chunk.
    pub fn ranges(&self, volume: u32, longest: u64) -> Vec<(u64, u64)> {
        let known = self.volumes.get(&volume);
        known.map_or_else(Vec::new, |known| joined(known.sectors.blocks(), longest))
    }

    /// Blocks of a volume that were ever written.
    pub fn blocks(&self, volume: u32) -> u64 {
        let known = self.volumes.get(&volume);
        known.map_or(0, |known| known.sectors.count() as u64)
    }

    /// As [`Oracle::ranges`], of blocks with something that no flush has covered, or that were
    /// changed recently.
    pub fn young(&self, volume: u32, longest: u64) -> Vec<(u64, u64)> {
        let known = self.volumes.get(&volume);
        known.map_or_else(Vec::new, |known| {
            known.young.ranges(self.next, longest, joined)
        })
    }
}

fn joined(blocks: impl Iterator<Item = u64>, longest: u64) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        match ranges.last_mut() {
            Some((first, count)) if block < *first + *count => {}
            Some((first, count))
                if block == *first + *count && *count < longest && block / 256 == *first / 256 =>
            {
                *count += 1;
            }
            _ => ranges.push((block, 1)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::fill;

    fn content(version: u32) -> Vec<u8> {
        let mut bytes = vec![0; SECTOR];
        if version != 0 {
            fill(1, 5, version, &mut bytes);
        }
        bytes
    }

    fn allowed(oracle: &Oracle) -> Vec<u32> {
        let fits = |version: &u32| {
            oracle
                .check_crashed(1, 5 * SECTOR as u64, &content(*version))
                .is_ok()
        };
        (0..5).filter(fits).collect()
    }

    #[test]
    fn a_flush_forbids_what_was_before() {
        let mut oracle = Oracle::default();
        oracle.volumes.insert(1, Volume::of(1, 0));
        assert_eq!(allowed(&oracle), [0]);
        let one = oracle.begin(1, 5..6, 1, false);
        assert_eq!(allowed(&oracle), [0, 1]);
        oracle.end(1, 5..6, one, true, false);
        assert_eq!(allowed(&oracle), [0, 1]);
        let moment = oracle.flush_begins();
        let two = oracle.begin(1, 5..6, 2, false);
        oracle.end(1, 5..6, two, true, false);
        oracle.flush_ends(1, moment);
        assert_eq!(allowed(&oracle), [1, 2]);
        let three = oracle.begin(1, 5..6, 3, false);
        oracle.end(1, 5..6, three, true, true);
        assert_eq!(allowed(&oracle), [3]);
        assert!(oracle.check_live(1, 5 * SECTOR as u64, &content(3)).is_ok());
        let failed = oracle.begin(1, 5..6, 4, false);
        oracle.end(1, 5..6, failed, false, false);
        assert!(oracle.check_live(1, 5 * SECTOR as u64, &content(3)).is_ok());
        assert_eq!(allowed(&oracle), [3, 4]);
    }

    #[test]
    fn content_of_another_place_is_recognised() {
        let mut elsewhere = content(1);
        fill(1, 6, 1, &mut elsewhere);
        let mut oracle = Oracle::default();
        oracle.volumes.insert(1, Volume::of(1, 0));
        let one = oracle.begin(1, 5..6, 1, false);
        oracle.end(1, 5..6, one, true, true);
        assert!(
            oracle
                .check_crashed(1, 5 * SECTOR as u64, &elsewhere)
                .is_err()
        );
    }
}
