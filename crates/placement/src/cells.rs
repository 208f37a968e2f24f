//! Statistics of every extent that hosts ever used: eight bytes each.
//!
//! Cells are in blocks of a region of 256 MiB, so that an extent is found with one look into a small
//! directory, which stays in the processor's caches, and one into memory. A TiB of which every region was used takes
//! 128 MiB.

use crate::age::{FORGOTTEN, Tick};
use crate::directory::Directory;
use crate::pieces::Pieces;
use crate::place::Extent;
use units::prefetch;

/// Extents of a region.
const REGION: u64 = 4096;
const CELLS: usize = REGION as usize;
/// No entry among what is present.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Statistics of an extent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell {
    /// Uses in the upper four bits, the tick of the last one in the others.
    seen: u16,
    /// Blocks that were ever used.
    pub used: u16,
    /// Its entry among what is present, and one; zero without one. The highest bit: see [`Cell::came_unasked`].
    at: u32,
}

/// The bit of `Cell::at` for blocks that were read ahead.
const UNASKED: u32 = 1 << 31;
/// The maximum number of entries.
pub(crate) const ENTRIES_MOST: u32 = UNASKED - 1;

impl Cell {
    /// Counted uses.
    pub(crate) fn uses(self) -> u8 {
        (self.seen >> 12) as u8
    }

    /// When it was last used.
    pub(crate) fn last(self) -> Tick {
        Tick(self.seen & 0xfff)
    }

    pub(crate) fn see(&mut self, uses: u8, now: Tick) {
        self.seen = u16::from(uses) << 12 | now.0;
    }

    /// Its entry, or [`ABSENT`].
    pub(crate) fn at(self) -> u32 {
        (self.at & !UNASKED).wrapping_sub(1)
    }

    pub(crate) fn set_at(&mut self, at: u32) {
        self.at = at.wrapping_add(1);
    }

    /// Its entry may have blocks that came unasked, of which nothing was learned yet: most uses need not examine the
    /// entry, which is elsewhere in memory.
    pub(crate) fn came_unasked(self) -> bool {
        self.at & UNASKED != 0
    }

    /// Of a cell that has an entry.
    pub(crate) fn set_came_unasked(&mut self, unasked: bool) {
        self.at &= !UNASKED;
        self.at |= u32::from(unasked) << 31;
    }
}

/// Where a cell is: good forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CellAt {
    region: u32,
    extent: u16,
}

impl CellAt {
    fn index(self) -> usize {
        self.region as usize * CELLS + usize::from(self.extent)
    }
}

/// Which region cells are of.
struct Region {
    volume: u32,
    number: u64,
}

/// All cells.
pub(crate) struct Cells {
    directory: Directory,
    regions: Vec<Region>,
    /// Those of each region, one after the other. What a volume had that is gone is for regions to come.
    cells: Pieces<Cell>,
    /// Numbers of regions of volumes that are gone.
    free: Vec<u32>,
    /// The region that is swept next.
    hand: usize,
}

impl Cells {
    pub(crate) fn new() -> Self {
        Self {
            directory: Directory::new(),
            regions: Vec::new(),
            cells: Pieces::default(),
            free: Vec::new(),
            hand: 0,
        }
    }

    /// The cell of an extent, if its region was ever used.
    #[inline]
    pub(crate) fn find(&self, extent: Extent) -> Option<CellAt> {
        let region = self.directory.get(extent.volume, extent.number / REGION)?;
        Some(CellAt {
            region,
            extent: (extent.number % REGION) as u16,
        })
    }

    /// The cell of an extent.
    #[inline]
    pub(crate) fn find_or_make(&mut self, extent: Extent) -> CellAt {
        let region = self
            .directory
            .get_near(extent.volume, extent.number / REGION);
        match region {
            Some(region) => CellAt {
                region,
                extent: (extent.number % REGION) as u16,
            },
            None => self.make(extent),
        }
    }

    #[cold]
    fn make(&mut self, extent: Extent) -> CellAt {
        let (volume, number) = (extent.volume, extent.number / REGION);
        let region = Region { volume, number };
        let at = match self.free.pop() {
            Some(at) => {
                self.regions[at as usize] = region;
                at
            }
            None => {
                self.regions.push(region);
                self.cells.extend(CELLS, Cell::default());
                self.regions.len() as u32 - 1
            }
        };
        self.directory.insert(volume, number, at);
        CellAt {
            region: at,
            extent: (extent.number % REGION) as u16,
        }
    }

    /// Has the processor fetch an extent's cell.
    pub(crate) fn prefetch(&self, extent: Extent) {
        if let Some(at) = self.find(extent) {
            self.prefetch_at(at);
        }
    }

    pub(crate) fn prefetch_at(&self, at: CellAt) {
        prefetch(&self.cells[at.index()]);
    }

    #[inline]
    pub(crate) fn get(&self, at: CellAt) -> Cell {
        self.cells[at.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: CellAt) -> &mut Cell {
        &mut self.cells[at.index()]
    }

    /// The entries of the extents before and after one, where those are in the same region; [`ABSENT`] for
    /// one that has none.
    pub(crate) fn beside(&self, at: CellAt) -> [Option<u32>; 2] {
        let cells = self.of_region(at.region);
        let near = |extent: Option<u16>| Some(cells.get(usize::from(extent?))?.at());
        [
            near(at.extent.checked_sub(1)),
            near(at.extent.checked_add(1)),
        ]
    }

    pub(crate) fn extent(&self, at: CellAt) -> Extent {
        let region = &self.regions[at.region as usize];
        Extent {
            volume: region.volume,
            number: region.number * REGION + u64::from(at.extent),
        }
    }

    /// The cells of a volume that have an entry among what is present.
    pub(crate) fn present_of(&self, volume: u32) -> Vec<CellAt> {
        let regions = self.regions.iter().zip(0u32..);
        let regions = regions.filter(|(region, _)| region.volume == volume);
        let cells = regions.flat_map(|(_, number)| {
            let cells = self.of_region(number).iter().zip(0u16..);
            let there = cells.filter(|(cell, _)| cell.at() != ABSENT);
            there.map(move |(_, extent)| CellAt {
                region: number,
                extent,
            })
        });
        cells.collect()
    }

    fn of_region(&self, region: u32) -> &[Cell] {
        self.cells.run(region as usize * CELLS, CELLS)
    }

    /// Forgets a volume, of which nothing may be present.
    pub(crate) fn forget(&mut self, volume: u32) {
        for (region, at) in self.regions.iter().zip(0u32..) {
            if region.volume == volume && self.directory.remove(volume, region.number) {
                let cells = self.cells.run_mut(at as usize * CELLS, CELLS);
                cells.fill(Cell::default());
                self.free.push(at);
            }
        }
    }

    /// Examines part of the regions for extents whose last use was so long ago that its tick would soon be taken
    /// for a new one, and forgets it. To be called once a tick; all are examined in 1,024 ticks.
    pub(crate) fn sweep(&mut self, now: Tick) {
        for _ in 0..self.regions.len().div_ceil(1024) {
            self.hand = (self.hand + 1) % self.regions.len();
            for cell in self.cells.run_mut(self.hand * CELLS, CELLS) {
                if cell.uses() > 0 && now.since(cell.last()) >= FORGOTTEN {
                    cell.seen = 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent {
        volume: 3,
        number: 5 * REGION + 17,
    };

    #[test]
    fn a_cell_keeps_what_it_was_told_and_knows_its_extent() {
        let mut cells = Cells::new();
        assert!(cells.find(EXTENT).is_none());
        let at = cells.find_or_make(EXTENT);
        cells.get_mut(at).see(9, Tick(4_000));
        cells.get_mut(at).set_at(7);
        let cell = cells.get(cells.find(EXTENT).expect("made"));
        assert_eq!((cell.uses(), cell.last(), cell.at()), (9, Tick(4_000), 7));
        assert_eq!(cells.extent(at), EXTENT);
        cells.get_mut(at).set_came_unasked(true);
        let cell = cells.get(at);
        assert_eq!((cell.came_unasked(), cell.at()), (true, 7));
        cells.get_mut(at).set_came_unasked(false);
        let cell = cells.get(at);
        assert_eq!((cell.came_unasked(), cell.at()), (false, 7));
        cells.get_mut(at).set_came_unasked(true);
        cells.get_mut(at).set_at(ABSENT);
        let cell = cells.get(at);
        assert_eq!((cell.came_unasked(), cell.at()), (false, ABSENT));
        let other = Extent {
            volume: 4,
            ..EXTENT
        };
        assert!(cells.find(other).is_none());
    }

    #[test]
    fn an_old_use_is_forgotten_before_its_tick_comes_again() {
        let mut cells = Cells::new();
        let at = cells.find_or_make(EXTENT);
        cells.get_mut(at).see(2, Tick(0));
        let mut now = Tick(0);
        for tick in 1..4_000 {
            now = now.next();
            cells.sweep(now);
            assert_eq!(cells.get(at).uses() > 0, tick < FORGOTTEN, "tick {tick}");
        }
    }

    #[test]
    fn a_cell_takes_eight_bytes() {
        assert_eq!(size_of::<Cell>(), 8);
    }
}
