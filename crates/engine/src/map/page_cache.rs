//! Which map pages are in memory, which are being loaded, and which leave.
//!
//! Eviction is a clock (second chance): pages are examined in a ring, and one that was used since the last time, is changed,
//! or is in use stays. Of a page that left a **summary** may stand in for it ([`PageSummaries`]); pages of frozen layers
//! leave for one even while there is room.
//!
//! [`PageCache`] owns the ring, the summaries and the loads in progress; pages themselves hang in their layers' trees. Its
//! invariants: a page is in the ring once while its tree has it (a key whose page is gone is taken out when the
//! hand comes to it); a summary exists only while its page is not in memory, so it is never older than that; two who need
//! one page load it once.

use super::page::MapPage;
use super::page_summary::PageSummaries;
use super::radix::Lookup;
use crate::control::explain::Cause;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use crate::tiering::access_stats::extent_of;
use crate::tiering::move_log::Move;
use reactor::Event;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::Place;

/// Pages that are examined in a row for summaries: less than a tenth of a millisecond.
const STEPS: usize = 256;
/// The same for room, by every operation that loads a page.
const TRIM_STEPS: usize = 64;

/// A chunk's page: its layer and chunk.
type Key = (u32, u32);
/// A page of a volume's tree: layer, level and key.
type NodeKey = (u32, u8, u32);

/// A shard's pages in memory.
pub(crate) struct PageCache {
    /// Chunks' pages in the order in which they are examined for eviction.
    clock: VecDeque<Key>,
    summaries: PageSummaries,
    /// Pages that are being loaded, with waiters for the same ones.
    loading: BTreeMap<NodeKey, Event>,
}

impl PageCache {
    /// Maximum bytes of summaries.
    pub fn new(summaries: usize) -> Self {
        Self {
            clock: VecDeque::new(),
            summaries: PageSummaries::new(summaries),
            loading: BTreeMap::new(),
        }
    }

    /// How many chunks' pages are in memory.
    pub fn pages(&self) -> usize {
        self.clock.len()
    }

    /// Bytes that summaries take.
    pub fn summary_bytes(&self) -> usize {
        self.summaries.bytes()
    }

    /// A page was made: none was on the drives.
    pub(super) fn made(&mut self, key: Key) {
        self.clock.push_back(key);
    }

    /// A page came from a drive.
    pub(super) fn loaded(&mut self, key: Key) {
        self.summaries.page_is_back(key);
        self.clock.push_back(key);
    }

    /// A layer is no more.
    pub(super) fn forget_layer(&mut self, layer: u32) {
        self.clock.retain(|key| key.0 != layer);
        self.summaries.forget_layer(layer);
    }

    /// The slot and the checksum of a block by its page's summary.
    #[inline]
    pub(super) fn summary(&self, key: Key, block: usize) -> Option<(Place, u32)> {
        self.summaries.find(key, block)
    }

    /// A page's summary was of use.
    #[inline]
    pub fn summary_used(&mut self, key: Key) {
        self.summaries.used(key);
    }

    /// Blocks at the locations of a summary could not be read.
    pub fn summary_failed(&mut self, key: Key) {
        self.summaries.forget(key);
    }

    /// Begins to load a page, until [`PageCache::end_load`]; while another one loads it, what waits for that.
    pub(super) fn begin_load(&mut self, page: NodeKey) -> Option<impl Future<Output = ()> + use<>> {
        match self.loading.entry(page) {
            Entry::Occupied(other) => Some(other.get().wait()),
            Entry::Vacant(none) => {
                none.insert(Event::default());
                None
            }
        }
    }

    /// A page was read, or could not be: waiters check again.
    pub(super) fn end_load(&mut self, page: NodeKey) {
        if let Some(event) = self.loading.remove(&page) {
            event.notify();
        }
    }
}

/// A page at the hand of the clock.
struct Candidate {
    key: (u32, u32),
    map_page: Rc<MapPage>,
    /// Another layer is based on its own.
    frozen: bool,
}

impl Shard {
    /// Limits the number of pages in memory: evicts clean unused ones.
    pub(crate) fn trim_pages(&self) {
        let mut state = self.state.borrow_mut();
        for _ in 0..TRIM_STEPS {
            if state.page_cache.pages() <= self.config.map_pages {
                return;
            }
            let Some(found) = next_page(&mut state) else {
                continue;
            };
            if !found.is_idle() || found.map_page.touched.replace(false) {
                state.page_cache.clock.push_back(found.key);
            } else {
                self.give_up(&mut state, &found);
            }
        }
    }

    /// Evicts pages of frozen layers whose summaries have all that a read needs: it is found sooner there than
    /// in pages, a hundred of which share what one page has of a volume without snapshots. Examines
    /// some of all pages, and at the next ones the next time.
    pub(crate) fn make_summaries(&self) {
        let mut state = self.state.borrow_mut();
        let pages = state.page_cache.pages();
        for _ in 0..pages.min(STEPS) {
            let Some(found) = next_page(&mut state) else {
                continue;
            };
            let is_fast = |place| self.class(place) == Class::Fast;
            let stands_in = found.frozen
                && found.is_idle()
                && found.map_page.ram_extents() == 0
                && state
                    .page_cache
                    .summaries
                    .stands_in(&found.map_page, is_fast);
            if stands_in {
                self.give_up(&mut state, &found);
            } else {
                state.page_cache.clock.push_back(found.key);
            }
        }
    }

    /// [`Shard::make_summaries`] of all pages.
    pub(crate) fn make_all_summaries(&self) {
        let rounds = self.state.borrow().page_cache.pages() / STEPS + 1;
        (0..rounds).for_each(|_| self.make_summaries());
    }

    /// Drops a page that is idle, and what of it is in RAM; its summary stays.
    fn give_up(&self, state: &mut State, page: &Candidate) {
        let Candidate { key, map_page, .. } = page;
        let now_ns = self.handle.now_ns();
        for (at, slot) in map_page.ram.iter().enumerate() {
            if let Some(slot) = slot.replace(0).checked_sub(1) {
                let blocks = state.ram.get(slot).map_or(0, |extent| extent.valid);
                let left = Move::new(now_ns, Cause::LeftWithPage, extent_of(*key, at), blocks);
                state.ledger.note(left);
                state.ram.drop_slot(slot);
            }
        }
        let entry = state.volumes.get_mut(&key.0);
        entry.expect("it has the page").tree.drop_leaf(key.1);
        if page.frozen {
            let is_fast = |place| self.class(place) == Class::Fast;
            state.page_cache.summaries.keep(*key, map_page, is_fast);
        }
    }
}

impl Candidate {
    /// It is clean, and only referenced by its tree and its extents in RAM.
    fn is_idle(&self) -> bool {
        let users = Rc::strong_count(&self.map_page) - 2 - self.map_page.ram_extents();
        !self.map_page.dirty.get() && users == 0
    }
}

/// Takes the page at the hand off the clock; none where that is gone already.
fn next_page(state: &mut State) -> Option<Candidate> {
    let key = state.page_cache.clock.pop_front()?;
    let entry = state.volumes.get(&key.0)?;
    let Lookup::Loaded(map_page) = entry.tree.lookup(key.1) else {
        return None;
    };
    Some(Candidate {
        key,
        map_page: map_page.clone(),
        frozen: entry.stood_on,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn two_who_need_one_page_load_it_once() {
        let mut cache = PageCache::new(1 << 20);
        assert!(cache.begin_load((1, 0, 5)).is_none());
        assert!(cache.begin_load((1, 1, 5)).is_none(), "another page");
        let [one, other] = [(); 2].map(|()| cache.begin_load((1, 0, 5)).unwrap());
        assert!(one.now_or_never().is_none());
        cache.end_load((1, 0, 5));
        assert!(other.now_or_never().is_some());
        assert!(cache.begin_load((1, 0, 5)).is_none());
    }
}
