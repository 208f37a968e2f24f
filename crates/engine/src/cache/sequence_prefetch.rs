//! Sequence prefetch: what followed the same extents before is read into RAM before hosts request it, while the disk has little else
//! to do (docs/placement.md, "Sequence prefetch").

use super::fill::{FillReason, parts};
use super::read_cache::Touch;
use super::readahead::at_home;
use crate::shard::state::{Shard, State};
use crate::tiering::access_stats::{chunk_of, extent_of};
use placement::{Blocks, Extent};
use qos::Due;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use units::EXTENT_BLOCKS;

/// Most reads that hosts wait for at which a disk has time for prefetches.
const WAITED_FOR_MOST: usize = 1;

impl State {
    /// A host accesses an extent that was absent, or was filled without a request. `saves`: it would not
    /// have been there without being predicted.
    pub(super) fn come_to(&mut self, (layer, chunk): (u32, u32), block: usize, saves: bool) {
        let volumes = &self.volumes;
        let is_there = |extent: Extent| {
            let ((layer, chunk), at) = chunk_of(extent);
            let map_page = volumes.get(&layer).and_then(|it| it.tree.leaf(chunk));
            map_page.is_some_and(|map_page| {
                map_page.ram[at].get() != 0 || map_page.fetching.get() >> at & 1 == 1
            })
        };
        let blocks = Blocks {
            extent: extent_of((layer, chunk), block / EXTENT_BLOCKS),
            mask: 1 << (block % EXTENT_BLOCKS),
        };
        self.access.follow(blocks, saves, is_there);
    }
}

impl Shard {
    /// What a host's use of a block in RAM shows. `waited`: since before the fill.
    pub(crate) fn note_touch(&self, state: &mut State, slot: u32, block: usize, waited: bool) {
        let saves = match state.ram.touch(slot, block % EXTENT_BLOCKS, waited) {
            Touch::First { ahead, before } => {
                state.access.regions().used(ahead, before);
                if !ahead {
                    return;
                }
                false
            }
            Touch::InTime => {
                state.access.regions().saved();
                false
            }
            Touch::Predicted => true,
            Touch::Again => return,
        };
        if let Some(chunk) = state.ram.get(slot).map(|extent| extent.chunk) {
            state.come_to(chunk, block, saves);
            self.fills.wake_prefetcher();
        }
    }

    /// Prefetches predicted extents while the shard runs.
    pub(crate) async fn sequence_prefetch_loop(self: Rc<Self>) {
        let mut found = Vec::new();
        while !self.lifecycle.is_closing() {
            let wake = self.fills.until_prefetcher_woken();
            if !self.state.borrow_mut().access.take_predicted(&mut found) {
                wake.await;
                continue;
            }
            for arrival in &found {
                if !self.lifecycle.is_closing()
                    && !self.shared.promotion_held.load(Ordering::Relaxed)
                {
                    self.read_predicted(arrival.blocks.extent).await;
                }
            }
        }
    }

    /// Reads an extent, if it is at home alone and the disk has time.
    async fn read_predicted(&self, extent: Extent) {
        let ((layer, chunk), at) = chunk_of(extent);
        let Ok(Some(map_page)) = self.map_page(layer, chunk, false).await else {
            return;
        };
        let home = map_page.page.borrow().home();
        let Some(part) = parts(self.fetchable(&map_page, 1 << at)).next() else {
            return;
        };
        let Ok(vdrive) = self.vdrive(home.vdrive()) else {
            return;
        };
        if vdrive.waited_for() > WAITED_FOR_MOST || self.fills.is_streaming() {
            return;
        }
        let turn = vdrive.turn(home.block(), EXTENT_BLOCKS, Due::NONE).await;
        let part = part & self.fetchable(&map_page, part);
        if part != 0 {
            let wanted = at_home(&map_page, part);
            let read = self.fetch_extents(
                (layer, chunk),
                &map_page,
                part,
                &wanted,
                FillReason::Predicted(turn),
            );
            // Failed blocks are read again, and their errors reported, when a host requests them.
            drop(read.await);
        }
    }
}

#[cfg(test)]
mod tests;
