//! Page summaries: the locations of an evicted page's blocks, which stay in memory.
//!
//! Behind a hundred snapshots what a volume inherits is spread over as many pages, each of which has a
//! few blocks. A summary has those blocks' places on the fast tier in a few bytes each, so that reading
//! them needs no page. There is one only while the page is not in memory, and nothing changes a page that is
//! not: so a summary is never older than its page.

use super::page::MapPage;
use format::BlockState;
use smallvec::SmallVec;
use std::collections::VecDeque;
use units::Place;
use units::hash::Table;
use units::mutation::{Mutation, is_on};

/// Blocks that a page may have to be worth it: beyond that its summary is not much smaller.
const MOST: usize = 64;
/// Blocks that lie beside the summary's key, so that they are found without another look into memory.
const BESIDE: usize = 8;
/// Bytes of a summary with a number of blocks: itself, its two keys, and what the table and the allocator
/// need.
const OVERHEAD: usize = 224;

/// One block: its slot, its number in the chunk and its checksum in twelve bytes.
#[derive(Clone, Copy)]
struct Entry([u32; 3]);

impl Entry {
    fn new(block: usize, slot: Place, crc: u32) -> Self {
        let place = slot.bits() | (block as u64) << 48;
        Self([place as u32, (place >> 32) as u32, crc])
    }

    fn block(self) -> usize {
        (self.0[1] >> 16) as usize
    }

    fn slot(self) -> Place {
        Place::from_bits(u64::from(self.0[0]) | u64::from(self.0[1]) << 32)
    }

    fn crc(self) -> u32 {
        self.0[2]
    }
}

/// Blocks in order of their numbers.
type Entries = SmallVec<[Entry; BESIDE]>;

/// The blocks of a page that are its own and are on the fast tier.
struct PageSummary {
    entries: Entries,
    /// Looked at since the hand last passed.
    touched: bool,
    /// Its number: the queue refers to this one, and not to an earlier one of the page.
    number: u64,
}

impl PageSummary {
    fn bytes(&self) -> usize {
        let apart = match self.entries.spilled() {
            true => self.entries.len() * size_of::<Entry>(),
            false => 0,
        };
        OVERHEAD + apart
    }
}

/// The content of a page's summary, if it is small and not empty.
fn entries_of(map_page: &MapPage, is_fast: impl Fn(Place) -> bool) -> Option<Entries> {
    let page = map_page.page.borrow();
    let slots = page.slot_mask();
    if slots.is_empty() || slots.count() > MOST {
        return None;
    }
    let own = slots.blocks().filter(|block| is_fast(page.slot(*block)));
    let mut entries: Entries = own
        .map(|block| Entry::new(block, page.slot(block), page.crc(block)))
        .collect();
    entries.shrink_to_fit();
    debug_assert!(entries.iter().all(|entry| {
        let state = page.state(entry.block());
        matches!(state, BlockState::Dirty | BlockState::Clean)
    }));
    (!entries.is_empty()).then_some(entries)
}

/// Summaries of pages, by layer and chunk.
#[derive(Default)]
pub(crate) struct PageSummaries {
    known: Table<(u32, u32), PageSummary>,
    /// In the order in which they are examined for eviction; some may be gone.
    queue: VecDeque<((u32, u32), u64)>,
    made: u64,
    bytes: usize,
    limit: usize,
}

impl PageSummaries {
    /// None yet, and never more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Keeps a summary of an evicted page, if it is small. `is_fast`: a place is on the fast tier.
    pub fn keep(&mut self, key: (u32, u32), map_page: &MapPage, is_fast: impl Fn(Place) -> bool) {
        let Some(entries) = entries_of(map_page, is_fast) else {
            return;
        };
        let summary = PageSummary {
            entries,
            touched: false,
            number: self.made,
        };
        self.made += 1;
        self.forget(key);
        self.bytes += summary.bytes();
        self.queue.push_back((key, summary.number));
        self.known.insert(key, summary);
        self.trim();
    }

    /// Whether a page's summary would have all of its blocks that are stored, and no other has to go for it.
    pub fn stands_in(&self, map_page: &MapPage, is_fast: impl Fn(Place) -> bool) -> bool {
        if self.bytes + OVERHEAD + MOST * size_of::<Entry>() > self.limit {
            return false;
        }
        let all = {
            let page = map_page.page.borrow();
            page.slot_mask().or(page.home_mask()).count()
        };
        entries_of(map_page, is_fast).is_some_and(|entries| entries.len() == all)
    }

    /// Where a page's block lies, and its checksum.
    pub fn find(&self, key: (u32, u32), block: usize) -> Option<(Place, u32)> {
        let entries = &self.known.get(&key)?.entries;
        let at = entries.binary_search_by_key(&block, |entry| entry.block());
        let entry = entries[at.ok()?];
        Some((entry.slot(), entry.crc()))
    }

    /// A block was located by a summary.
    pub fn used(&mut self, key: (u32, u32)) {
        if let Some(summary) = self.known.get_mut(&key) {
            summary.touched = true;
        }
    }

    /// The page is in memory: it counts, and its summary goes.
    pub fn page_is_back(&mut self, key: (u32, u32)) {
        if !is_on(Mutation::DigestKept) {
            self.forget(key);
        }
    }

    /// Forgets the summary of a page.
    pub fn forget(&mut self, key: (u32, u32)) {
        if let Some(summary) = self.known.remove(&key) {
            self.bytes -= summary.bytes();
        }
    }

    /// Forgets those of a layer.
    pub fn forget_layer(&mut self, layer: u32) {
        // The queue has every one of them.
        self.queue.retain(|(key, _)| {
            let stays = key.0 != layer;
            if !stays && let Some(summary) = self.known.remove(key) {
                self.bytes -= summary.bytes();
            }
            stays
        });
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A clock hand over the summaries: those that were not used since it last passed go. Also what the
    /// queue refers to and is gone, so that its length is at most twice the number of summaries.
    fn trim(&mut self) {
        while self.bytes > self.limit || self.queue.len() > 2 * self.known.len() + 64 {
            let Some((key, number)) = self.queue.pop_front() else {
                return;
            };
            let summary = self.known.get_mut(&key);
            let Some(summary) = summary.filter(|summary| summary.number == number) else {
                continue;
            };
            if std::mem::take(&mut summary.touched) || self.bytes <= self.limit {
                self.queue.push_back((key, number));
            } else {
                self.forget(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::{BlockCounts, ChunkPage};
    use std::rc::Rc;
    use units::VdriveId;

    fn place(vdrive: u8, block: usize) -> Place {
        Place::new(VdriveId(vdrive), 1000 + block as u64)
    }

    /// A page with these blocks, every third on the slow tier.
    fn page(blocks: impl Iterator<Item = usize>) -> Rc<MapPage> {
        let mut page = ChunkPage::new(1, 2);
        for block in blocks {
            let vdrive = 1 + u8::from(block % 3 == 0);
            page.set_slot(block, place(vdrive, block));
            page.set_crc(block, block as u32 * 7);
        }
        MapPage::new(page, BlockCounts::default())
    }

    fn is_fast(place: Place) -> bool {
        place.vdrive() == VdriveId(1)
    }

    #[test]
    fn a_summary_has_what_is_fast_until_its_page_is_back() {
        let mut summaries = PageSummaries::new(1 << 20);
        let map_page = page([3, 4, 7, 250].into_iter());
        summaries.keep((9, 2), &map_page, is_fast);
        assert_eq!(summaries.find((9, 2), 4), Some((place(1, 4), 28)));
        assert_eq!(summaries.find((9, 2), 250), Some((place(1, 250), 1750)));
        // On the slow tier, not there, of another page.
        for (key, block) in [((9, 2), 3), ((9, 2), 5), ((9, 3), 4), ((8, 2), 4)] {
            assert_eq!(summaries.find(key, block), None);
        }
        summaries.page_is_back((9, 2));
        assert_eq!(summaries.find((9, 2), 4), None);
        assert_eq!(summaries.bytes(), 0);
    }

    #[test]
    fn many_blocks_are_found_as_a_few_are() {
        for count in [BESIDE, BESIDE + 1, MOST] {
            let mut summaries = PageSummaries::new(1 << 20);
            let blocks = || (0..count).map(|at| 3 * at + 1);
            summaries.keep((1, 1), &page(blocks()), is_fast);
            for block in blocks() {
                let found = Some((place(1, block), block as u32 * 7));
                assert_eq!(summaries.find((1, 1), block), found, "{block} of {count}");
                assert_eq!(summaries.find((1, 1), block + 1), None);
            }
        }
    }

    #[test]
    fn pages_with_much_or_nothing_have_none() {
        let mut summaries = PageSummaries::new(1 << 20);
        summaries.keep((1, 1), &page(0..MOST + 1), is_fast);
        summaries.keep((1, 2), &page([3, 6].into_iter()), is_fast);
        summaries.keep((1, 3), &page(std::iter::empty()), is_fast);
        assert_eq!(summaries.bytes(), 0);
    }

    #[test]
    fn they_stay_within_their_memory_and_what_is_used_stays_longest() {
        let limit = 100 * OVERHEAD;
        let mut summaries = PageSummaries::new(limit);
        for chunk in 0..1000 {
            summaries.keep((1, chunk), &page([1].into_iter()), is_fast);
            summaries.used((1, 0));
            assert!(summaries.bytes() <= limit);
            assert!(summaries.queue.len() <= 2 * summaries.known.len() + 64);
        }
        assert!(summaries.find((1, 0), 1).is_some());
        assert!(summaries.find((1, 1), 1).is_none());
        assert!(summaries.find((1, 999), 1).is_some());
        // One page that comes and goes.
        for _ in 0..1000 {
            summaries.keep((2, 0), &page([1].into_iter()), is_fast);
            assert!(summaries.queue.len() <= 2 * summaries.known.len() + 64);
            summaries.page_is_back((2, 0));
        }
        summaries.forget_layer(1);
        summaries.forget_layer(2);
        assert_eq!((summaries.bytes(), summaries.queue.len()), (0, 0));
    }
}
