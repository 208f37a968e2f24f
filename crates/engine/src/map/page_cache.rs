//! Pages that leave memory: beyond what a shard may keep, and those for which summaries stand in.

use super::page::MapPage;
use super::radix::Lookup;
use crate::control::explain::Cause;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use crate::tiering::access_stats::extent_of;
use crate::tiering::move_log::Move;
use std::rc::Rc;

/// Pages that are looked at in a row for summaries: less than a tenth of a millisecond.
const STEPS: usize = 256;
/// The same for room, by every operation that loads a page.
const TRIM_STEPS: usize = 64;

/// A page at the front of the queue.
struct Candidate {
    key: (u32, u32),
    map_page: Rc<MapPage>,
    /// Another layer stands on its own.
    frozen: bool,
}

impl Shard {
    /// Keeps the number of pages in memory at what it may be: drops clean ones that nobody uses.
    pub(crate) fn trim_pages(&self) {
        let mut state = self.state.borrow_mut();
        for _ in 0..TRIM_STEPS {
            if state.page_clock.len() <= self.config.map_pages {
                return;
            }
            let Some(found) = next_page(&mut state) else {
                continue;
            };
            if !found.is_idle() || found.map_page.touched.replace(false) {
                state.page_clock.push_back(found.key);
            } else {
                self.give_up(&mut state, &found);
            }
        }
    }

    /// Gives up pages of frozen layers of which summaries have all that a read needs: it is found sooner there than
    /// in pages, a hundred of which share what one page has of a volume without snapshots. Looks at
    /// some of all pages, and at the next ones the next time.
    pub(crate) fn make_summaries(&self) {
        let mut state = self.state.borrow_mut();
        let pages = state.page_clock.len();
        for _ in 0..pages.min(STEPS) {
            let Some(found) = next_page(&mut state) else {
                continue;
            };
            let is_fast = |place| self.class(place) == Class::Fast;
            let stands_in = found.frozen
                && found.is_idle()
                && found.map_page.ram_extents() == 0
                && state.summaries.stands_in(&found.map_page, is_fast);
            if stands_in {
                self.give_up(&mut state, &found);
            } else {
                state.page_clock.push_back(found.key);
            }
        }
    }

    /// [`Shard::make_summaries`] of all pages.
    pub(crate) fn make_all_summaries(&self) {
        let rounds = self.state.borrow().page_clock.len() / STEPS + 1;
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
            state.summaries.keep(*key, map_page, is_fast);
        }
    }
}

impl Candidate {
    /// It is as it lies on the drive, and nobody has it but its tree and what of it is in RAM.
    fn is_idle(&self) -> bool {
        let users = Rc::strong_count(&self.map_page) - 2 - self.map_page.ram_extents();
        !self.map_page.dirty.get() && users == 0
    }
}

/// Takes the first page off the queue; none where that is gone already.
fn next_page(state: &mut State) -> Option<Candidate> {
    let key = state.page_clock.pop_front()?;
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
