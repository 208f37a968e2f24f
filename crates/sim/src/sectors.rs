//! The valid contents of sectors, and a volume's sectors by blocks.

use crate::content::SECTORS;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Versions that a sector may have.
pub type Versions = Vec<u32>;

/// A change that was requested.
#[derive(Clone, Debug)]
struct Issued {
    may_be: MayBe,
    /// Completions before its own; none while it is in flight.
    ended: Option<u64>,
    id: u64,
}

/// Versions of which a sector has one: mostly there is only one, which is kept in place.
#[derive(Clone, Debug)]
struct MayBe {
    one: u32,
    several: Versions,
}

impl MayBe {
    fn one(version: u32) -> Self {
        Self {
            one: version,
            several: Versions::new(),
        }
    }

    fn of(mut versions: Versions) -> Self {
        versions.sort_unstable();
        versions.dedup();
        match versions[..] {
            [one] => Self::one(one),
            _ => Self {
                one: 0,
                several: versions,
            },
        }
    }

    /// In order.
    fn has(&self, version: u32) -> bool {
        self.all().binary_search(&version).is_ok()
    }

    fn all(&self) -> &[u32] {
        match self.several[..] {
            [] => std::slice::from_ref(&self.one),
            ref several => several,
        }
    }
}

/// One sector: what is durable, and what was requested since.
#[derive(Clone, Debug)]
pub struct Sector {
    durable: MayBe,
    issued: Vec<Issued>,
}

impl Sector {
    /// A sector that has one of these versions, and keeps it.
    pub fn of(versions: Versions) -> Self {
        Self {
            durable: MayBe::of(versions),
            issued: Vec::new(),
        }
    }

    /// Whether something that changes it is in progress.
    pub fn is_open(&self) -> bool {
        self.issued.iter().any(|issued| issued.ended.is_none())
    }

    /// Valid content when everything stops: operations in flight may or may not have happened.
    pub fn possible(&self) -> Versions {
        let open = self.issued.iter().filter(|issued| issued.ended.is_none());
        let open = open.flat_map(|issued| issued.may_be.all());
        self.current().iter().chain(open).copied().collect()
    }

    /// Its content, if known.
    pub fn only(&self) -> Option<u32> {
        match (self.durable.all(), &self.issued[..]) {
            ([one], []) => Some(*one),
            _ => None,
        }
    }

    /// Operation `id` was asked to give it one of these versions.
    pub fn issue(&mut self, id: u64, versions: Versions) {
        self.issued.push(Issued {
            may_be: MayBe::of(versions),
            ended: None,
            id,
        });
    }

    /// Operation `id` ended at `moment`; without success it may have what it had. False when it knows of none.
    pub fn end(&mut self, id: u64, moment: u64, worked: bool) -> bool {
        let before = (!worked).then(|| self.current().to_vec());
        let Some(issued) = self.issued.iter_mut().find(|issued| issued.id == id) else {
            return false;
        };
        issued.ended = Some(moment);
        if let Some(before) = before {
            let known = issued.may_be.all().iter().copied();
            issued.may_be = MayBe::of(known.chain(before).collect());
        }
        true
    }

    /// Whether all that was requested is durable.
    pub fn is_settled(&self) -> bool {
        self.issued.is_empty()
    }

    /// After a crash: it has one of all that it may have.
    pub fn forget_order(&mut self) {
        let all: BTreeSet<u32> = self.any().into_iter().collect();
        self.issued.clear();
        self.durable = MayBe::of(all.into_iter().collect());
    }

    /// The client has ended at `moment`: operations in flight may have happened.
    pub fn stop(&mut self, moment: u64) {
        let before = self.current().to_vec();
        let open = |issued: &&mut Issued| issued.ended.is_none();
        for issued in self.issued.iter_mut().filter(open) {
            let given = issued.may_be.all().iter().copied();
            issued.may_be = MayBe::of(given.chain(before.iter().copied()).collect());
            issued.ended = Some(moment);
        }
    }

    /// Valid content after a power cut.
    pub fn any(&self) -> Versions {
        let issued = self.issued.iter().flat_map(|issued| issued.may_be.all());
        self.durable.all().iter().chain(issued).copied().collect()
    }

    /// Whether it may hold this after a power cut.
    pub fn may_be(&self, version: u32) -> bool {
        let mut issued = self.issued.iter();
        self.durable.has(version) || issued.any(|issued| issued.may_be.has(version))
    }

    /// Content that a read returns without operations in flight.
    pub fn current(&self) -> &[u32] {
        let last = self
            .issued
            .iter()
            .rev()
            .find(|issued| issued.ended.is_some());
        last.map_or(self.durable.all(), |issued| issued.may_be.all())
    }

    /// One of several versions was observed.
    pub fn found(&mut self, version: u32) {
        let last = self
            .issued
            .iter_mut()
            .rev()
            .find(|issued| issued.ended.is_some());
        match last {
            Some(issued) => issued.may_be = MayBe::one(version),
            None => self.durable = MayBe::one(version),
        }
    }

    /// Operations that ended by `upto` are durable.
    pub fn settle(&mut self, upto: u64) {
        let covered = |issued: &Issued| issued.ended.is_some_and(|at| at <= upto);
        let mut last: Option<Issued> = None;
        self.issued.retain(|issued| {
            let covered = covered(issued);
            if covered && last.as_ref().is_none_or(|last| last.ended < issued.ended) {
                last = Some(issued.clone());
            }
            !covered
        });
        if let Some(last) = last {
            self.durable = last.may_be;
        }
    }
}

/// The versions of a block's sectors, if each has but one.
#[derive(Clone, Copy, Debug)]
enum Plain {
    Unknown,
    No,
    Yes([u32; SECTORS]),
}

/// The sectors of a block; none was never changed.
#[derive(Clone, Debug)]
struct Block {
    sectors: [Option<Sector>; SECTORS],
    /// Determined on demand, and dropped when a sector changes: most blocks of most states are plain.
    plain: Cell<Plain>,
}

impl Block {
    fn plain(&self) -> Plain {
        if let Plain::Unknown = self.plain.get() {
            let only = |sector: &Option<Sector>| sector.as_ref().map_or(Some(0), Sector::only);
            let mut versions = [0; SECTORS];
            let mut known = versions.iter_mut().zip(&self.sectors);
            let plain = known.all(|(version, sector)| match only(sector) {
                Some(only) => {
                    *version = only;
                    true
                }
                None => false,
            });
            self.plain.set(match plain {
                true => Plain::Yes(versions),
                false => Plain::No,
            });
        }
        self.plain.get()
    }
}

/// Blocks of a group.
const GROUP: u64 = 64;

/// Blocks by number: large, and by themselves, as every comparison looks some up.
type Group = [Option<Box<Block>>; GROUP as usize];

/// Sectors of a volume that were ever changed.
#[derive(Clone, Debug, Default)]
pub struct SectorMap {
    groups: BTreeMap<u64, Box<Group>>,
    /// Blocks with such sectors.
    count: usize,
}

/// The block of a sector, and its place there.
fn split(at: u64) -> (u64, usize) {
    let sectors = SECTORS as u64;
    (at / sectors, (at % sectors) as usize)
}

impl SectorMap {
    fn block(&self, block: u64) -> Option<&Block> {
        let group = self.groups.get(&(block / GROUP))?;
        group[(block % GROUP) as usize].as_deref()
    }

    /// A sector, if it was ever changed.
    pub fn get(&self, at: u64) -> Option<&Sector> {
        let (block, index) = split(at);
        self.block(block)?.sectors[index].as_ref()
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, at: u64) -> Option<&mut Sector> {
        let (block, index) = split(at);
        let group = self.groups.get_mut(&(block / GROUP))?;
        let block = group[(block % GROUP) as usize].as_mut()?;
        block.plain.set(Plain::Unknown);
        block.sectors[index].as_mut()
    }

    /// A sector, to change it; of zeroes when it was never changed.
    pub fn get_or_zero(&mut self, at: u64) -> &mut Sector {
        let (block, index) = split(at);
        let group = self.groups.entry(block / GROUP);
        let group = group.or_insert_with(|| Box::new([const { None }; GROUP as usize]));
        let block = group[(block % GROUP) as usize].get_or_insert_with(|| {
            self.count += 1;
            Box::new(Block {
                sectors: [const { None }; SECTORS],
                plain: Cell::new(Plain::Unknown),
            })
        });
        block.plain.set(Plain::Unknown);
        block.sectors[index].get_or_insert_with(|| Sector::of(vec![0]))
    }

    /// Sectors that were ever changed, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Sector)> {
        self.range(0..u64::MAX)
    }

    /// Those of a range.
    pub fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Sector)> {
        let sectors = SECTORS as u64;
        let blocks = range.start / sectors..range.end.div_ceil(sectors);
        let all = self.within(blocks).flat_map(move |(block, known)| {
            let numbers = block * sectors..;
            let known = numbers.zip(&known.sectors);
            known.filter_map(|(at, sector)| Some((at, sector.as_ref()?)))
        });
        all.filter(move |(at, _)| range.contains(at))
    }

    /// Known blocks of a range, in order.
    fn within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Block)> {
        let groups = self
            .groups
            .range(range.start / GROUP..range.end.div_ceil(GROUP));
        let all = groups.flat_map(|(group, blocks)| (group * GROUP..).zip(&blocks[..]));
        let known = all.filter_map(|(at, block)| Some((at, block.as_deref()?)));
        known.filter(move |(at, _)| range.contains(at))
    }

    /// Blocks with such sectors, in order.
    pub fn blocks(&self) -> impl Iterator<Item = u64> {
        self.within(0..u64::MAX).map(|(block, _)| block)
    }

    /// How many these are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets sectors from `first` on.
    pub fn cut(&mut self, first: u64) {
        let (block, index) = split(first);
        let groups = self.groups.range_mut(block / GROUP..);
        let all = groups.flat_map(|(group, blocks)| (group * GROUP..).zip(&mut blocks[..]));
        for (at, known) in all.filter(|(at, _)| *at >= block) {
            if at == block && index > 0 {
                if let Some(part) = known {
                    part.sectors[index..].fill(None);
                    part.plain.set(Plain::Unknown);
                }
                continue;
            }
            self.count -= usize::from(known.take().is_some());
        }
    }

    /// Sectors that may have one of several versions, to change them.
    pub fn each_unclear(&mut self, mut change: impl FnMut(&mut Sector)) {
        let groups = self.groups.values_mut();
        for block in groups.flat_map(|blocks| blocks.iter_mut().flatten()) {
            if let Plain::Yes(_) = block.plain() {
                continue;
            }
            block.plain.set(Plain::Unknown);
            let unclear = |sector: &&mut Sector| sector.only().is_none();
            let sectors = block.sectors.iter_mut().flatten();
            sectors.filter(unclear).for_each(&mut change);
        }
    }

    /// Whether the sectors of a block may have these versions after a power cut.
    pub fn fits(&self, block: u64, versions: [u32; SECTORS]) -> bool {
        let Some(known) = self.block(block) else {
            return versions == [0; SECTORS];
        };
        if let Plain::Yes(plain) = known.plain() {
            return plain == versions;
        }
        let mut sectors = known.sectors.iter().zip(versions);
        sectors.all(|(sector, version)| match sector {
            Some(sector) => sector.may_be(version),
            None => version == 0,
        })
    }
}

impl FromIterator<(u64, Sector)> for SectorMap {
    fn from_iter<T: IntoIterator<Item = (u64, Sector)>>(sectors: T) -> Self {
        let mut map = Self::default();
        for (at, sector) in sectors {
            *map.get_or_zero(at) = sector;
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_fits_what_each_of_its_sectors_may_have() {
        let mut map = SectorMap::default();
        assert!(map.fits(2, [0; SECTORS]));
        assert!(!map.fits(2, [0, 0, 0, 0, 0, 0, 0, 1]));
        map.get_or_zero(17).issue(1, vec![5]);
        let with = |version| [0, version, 0, 0, 0, 0, 0, 0];
        assert!(map.fits(2, with(0)) && map.fits(2, with(5)) && !map.fits(2, with(4)));
        let sector = map.get_mut(17).expect("it was changed");
        assert!(sector.end(1, 1, true));
        sector.settle(1);
        assert!(
            map.fits(2, with(5)) && !map.fits(2, with(0)),
            "it is plain now"
        );
        map.get_or_zero(17).issue(2, vec![6]);
        assert!(
            map.fits(2, with(6)) && map.fits(2, with(5)),
            "and is not any more"
        );
    }

    #[test]
    fn a_change_that_fails_leaves_each_version_once() {
        let mut sector = Sector::of(vec![7]);
        for id in 1..=50 {
            sector.issue(id, vec![id as u32 * 10, 7]);
            assert!(sector.end(id, id, false));
            assert_eq!(sector.current().len() as u64, id + 1);
        }
        assert!(sector.may_be(7) && sector.may_be(10) && sector.may_be(500) && !sector.may_be(8));
    }

    #[test]
    fn what_is_cut_off_is_forgotten() {
        let mut map: SectorMap = (0..40).map(|at| (at, Sector::of(vec![1]))).collect();
        map.cut(19);
        assert_eq!(map.iter().map(|(at, _)| at).max(), Some(18));
        assert_eq!(map.blocks().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(
            map.range(6..10).map(|(at, _)| at).collect::<Vec<_>>(),
            [6, 7, 8, 9]
        );
        map.cut(16);
        assert_eq!((map.blocks().count(), map.count()), (2, 2));
    }
}
