//! The extents of which something is in RAM or on the fast tier: 32 bytes each, and the order in
//! which RAM evicts.

use crate::cells::{CellAt, Cells, ENTRIES_MOST};
use crate::pieces::Pieces;
use units::prefetch;

/// The end of the order.
const NONE: u32 = u32::MAX;

/// Blocks of an extent by tier.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub cell: CellAt,
    /// Blocks on the fast tier.
    pub fast: u16,
    /// Those of them that are nowhere else.
    pub dirty: u16,
    /// Blocks in RAM.
    pub ram: u16,
    /// Blocks that hosts requested since the extent came to RAM; once it has left, those that were.
    pub touched: u16,
    /// Blocks in RAM that were filled without a request; after the eviction, those that were never requested.
    pub ahead: u16,
    /// Blocks that had been used before the extent came to RAM; once it has left, before it did.
    pub known: u16,
    /// The block asked for that those which came unasked are nearest to, from the extent's first.
    pub origin: i16,
    /// Statistics of the surroundings at that time.
    pub scene: u8,
    /// See `neighbours`.
    pub kind: u8,
    newer: u32,
    older: u32,
}

/// All entries. The numbers of removed ones are given out again.
pub(crate) struct Present {
    entries: Pieces<Entry>,
    /// The first of the removed entries; the next of each is its `older`.
    free: u32,
    newest: u32,
    oldest: u32,
    /// Blocks on the fast tier.
    pub fast_blocks: u64,
    /// Blocks in RAM.
    pub ram_blocks: u64,
}

impl Present {
    pub(crate) fn new() -> Self {
        Self {
            entries: Pieces::default(),
            free: NONE,
            newest: NONE,
            oldest: NONE,
            fast_blocks: 0,
            ram_blocks: 0,
        }
    }

    /// How many entries there are, removed ones too: those have nothing anywhere.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An entry, unless `at` is none's.
    pub(crate) fn get(&self, at: u32) -> Option<&Entry> {
        self.entries.get(at as usize)
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut Entry> {
        self.entries.get_mut(at as usize)
    }

    /// The entry of a cell, made if it has none.
    pub(crate) fn of(&mut self, cells: &mut Cells, cell: CellAt) -> u32 {
        let at = cells.get(cell).at();
        if self.get(at).is_some() {
            return at;
        }
        let entry = Entry {
            cell,
            fast: 0,
            dirty: 0,
            ram: 0,
            touched: 0,
            ahead: 0,
            known: 0,
            origin: 0,
            scene: 0,
            kind: 0,
            newer: NONE,
            older: NONE,
        };
        let mut at = self.free;
        if let Some(removed) = self.get_mut(at) {
            let next = removed.older;
            *removed = entry;
            self.free = next;
            // The next extent that needs one finds it fetched.
            self.prefetch(next);
        } else {
            at = self.entries.len() as u32;
            assert!(at < ENTRIES_MOST, "fewer than 2^31 - 1 extents are present");
            self.entries.push(entry);
        }
        cells.get_mut(cell).set_at(at);
        at
    }

    /// The next extent to evict from RAM.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Has the processor fetch an entry, unless `at` is none's.
    pub(crate) fn prefetch(&self, at: u32) {
        if let Some(entry) = self.get(at) {
            prefetch(entry);
        }
    }

    /// Prefetches memory that the eviction of the next extent from RAM will read: its cell, and the entry
    /// after it. Its own entry is near, as it was linked again when the one before it left.
    pub(crate) fn prefetch_oldest(&self, cells: &Cells) {
        let Some(oldest) = self.get(self.oldest) else {
            return;
        };
        cells.prefetch_at(oldest.cell);
        self.prefetch(oldest.newer);
    }

    /// Adds blocks to those in RAM.
    pub(crate) fn put_in_ram(&mut self, at: u32, mask: u16) {
        let entry = &mut self.entries[at as usize];
        let was = entry.ram;
        entry.ram |= mask;
        self.ram_blocks += u64::from((entry.ram & !was).count_ones());
        if was == 0 && mask != 0 {
            self.link(at);
        }
    }

    /// Takes blocks from those in RAM.
    pub(crate) fn take_from_ram(&mut self, at: u32, mask: u16) {
        let entry = &mut self.entries[at as usize];
        let was = entry.ram;
        entry.ram &= !mask;
        self.ram_blocks -= u64::from((was & mask).count_ones());
        if was != 0 && entry.ram == 0 {
            self.unlink(at);
        }
    }

    /// An extent that is in RAM was used: it leaves last.
    pub(crate) fn renew(&mut self, at: u32) {
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
    }

    /// Sets which blocks are on the fast tier.
    pub(crate) fn set_fast(&mut self, at: u32, fast: u16) {
        let entry = &mut self.entries[at as usize];
        self.fast_blocks += u64::from(fast.count_ones());
        self.fast_blocks -= u64::from(entry.fast.count_ones());
        entry.fast = fast;
        entry.dirty &= fast;
    }

    /// Removes an entry that has nothing left.
    pub(crate) fn tidy(&mut self, cells: &mut Cells, at: u32) {
        let Some(entry) = self.get(at) else { return };
        if entry.fast | entry.ram != 0 {
            return;
        }
        cells.get_mut(entry.cell).set_at(crate::cells::ABSENT);
        let free = self.free;
        if let Some(removed) = self.get_mut(at) {
            removed.older = free;
            self.free = at;
        }
    }

    fn link(&mut self, at: u32) {
        let newest = self.newest;
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, newest);
        match self.get_mut(newest) {
            Some(newest) => newest.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match self.get_mut(newer) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.get_mut(older) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Extent;

    fn filled(count: u64) -> (Cells, Present, Vec<CellAt>) {
        let (mut cells, mut present) = (Cells::new(), Present::new());
        let places = (0..count).map(|number| {
            let cell = cells.find_or_make(Extent { volume: 1, number });
            let at = present.of(&mut cells, cell);
            present.put_in_ram(at, 0b11);
            cell
        });
        let places = places.collect();
        (cells, present, places)
    }

    fn order(cells: &mut Cells, present: &mut Present) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(at) = present.oldest() {
            let cell = present.get(at).expect("it is in RAM").cell;
            numbers.push(cells.extent(cell).number);
            present.take_from_ram(at, u16::MAX);
            present.tidy(cells, at);
        }
        numbers
    }

    #[test]
    fn ram_lets_go_in_the_order_of_last_use() {
        let (mut cells, mut present, places) = filled(5);
        let third = cells.get(places[2]).at();
        present.renew(third);
        let first = cells.get(places[0]).at();
        present.take_from_ram(first, u16::MAX);
        present.tidy(&mut cells, first);
        assert_eq!(order(&mut cells, &mut present), [1, 3, 4, 2]);
        assert_eq!(present.ram_blocks, 0);
    }

    #[test]
    fn a_removed_entrys_number_is_given_out_again() {
        let (mut cells, mut present, places) = filled(3);
        for place in places {
            let at = cells.get(place).at();
            present.take_from_ram(at, u16::MAX);
            present.tidy(&mut cells, at);
        }
        for number in 10..14 {
            let cell = cells.find_or_make(Extent { volume: 1, number });
            let at = present.of(&mut cells, cell);
            present.put_in_ram(at, 1);
        }
        assert_eq!(present.len(), 4);
        assert_eq!(order(&mut cells, &mut present), [10, 11, 12, 13]);
    }

    #[test]
    fn an_extent_stays_while_it_has_blocks_anywhere() {
        let (mut cells, mut present, places) = filled(1);
        let at = cells.get(places[0]).at();
        present.set_fast(at, 0b110);
        present.take_from_ram(at, u16::MAX);
        present.tidy(&mut cells, at);
        assert_eq!(present.fast_blocks, 2);
        assert!(present.get(cells.get(places[0]).at()).is_some());
        present.set_fast(at, 0);
        present.tidy(&mut cells, at);
        assert_eq!(present.fast_blocks, 0);
        assert!(present.get(cells.get(places[0]).at()).is_none());
    }

    #[test]
    fn an_entry_takes_32_bytes() {
        assert_eq!(size_of::<Entry>(), 32);
    }
}
