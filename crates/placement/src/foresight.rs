//! Prefetches as accesses of their own: no host waits for them.

use crate::ahead::UNLEARNT;
use crate::moves::{Arrival, PASSED};
use crate::place::{Blocks, Extent};
use crate::policy::Policy;
use std::ops::Range;
use units::EXTENT_BLOCKS;

/// Minimum probability of use for an extent to be worth a seek in a prefetch.
const WORTH: f32 = 0.22;
/// Least chance for one that lies near another that is read.
const WORTH_NEAR: f32 = 0.1;
/// Most blocks between those.
const NEAR: u64 = 100;

impl Policy {
    /// Blocks of a read that [`Found`](crate::Found) says that hosts come to again: what may follow is foreseen.
    pub fn follow(&mut self, blocks: Blocks) {
        let cell = self.cells.find(blocks.extent).map(|at| self.cells.get(at));
        let entry = cell.and_then(|cell| self.present.get(cell.at()));
        // What came with a miss nearby would have been there without being foreseen.
        let saves = entry.is_none_or(|it| it.ahead & it.ram == 0 || it.scene == UNLEARNT);
        self.follow_where(blocks, saves, |_| false);
    }

    /// As [`Policy::follow`], for an owner with an order of RAM of its own, who says of which extents something
    /// `is_there`. `saves`: these blocks would not have been there without being foreseen.
    pub fn follow_where(&mut self, blocks: Blocks, saves: bool, is_there: impl Fn(Extent) -> bool) {
        let known = self.trail.foreseen.len();
        self.trail.came_to(blocks, saves);
        for at in known..self.trail.foreseen.len() {
            let foreseen = self.trail.foreseen[at];
            if self.absent(foreseen.blocks) != 0 && !is_there(foreseen.blocks.extent) {
                self.trail.watch(foreseen);
            }
        }
    }

    /// The next prefetch, while hosts wait for nothing, in one access: the volume and the blocks.
    /// To be requested until there is nothing more, or no time; what was not read by the next call of
    /// [`Policy::follow`] may still be. `head` and `keep` as for [`Policy::fetch`], but for the head's volume.
    pub fn foreseen(
        &mut self,
        head: Option<(u32, u64)>,
        keep: &mut Vec<Arrival>,
    ) -> Option<(u32, Range<u64>)> {
        keep.clear();
        let mut foreseen = std::mem::take(&mut self.trail.foreseen);
        let mut read: Option<(u32, Range<u64>)> = None;
        foreseen.retain(|it| {
            let mask = self.absent(it.blocks);
            let (chance, extent) = (self.trail.chance(it.kind), it.blocks.extent);
            if mask == 0 || chance < WORTH_NEAR {
                return false;
            }
            let own = span(extent, mask);
            let is_worth_it = match &read {
                Some((volume, read)) => {
                    *volume == extent.volume
                        && own.start < read.end + NEAR
                        && read.start < own.end + NEAR
                }
                None => chance >= WORTH,
            };
            if is_worth_it {
                let (_, read) = read.get_or_insert((extent.volume, own.clone()));
                *read = read.start.min(own.start)..read.end.max(own.end);
                keep.push(Arrival::foreseen(Blocks { extent, mask }));
            }
            !is_worth_it
        });
        if read.is_none() {
            // Nothing of the rest is worth it. It may be foreseen again, from nearer.
            foreseen.clear();
        }
        self.trail.foreseen = foreseen;
        let (volume, mut read) = read?;
        if let Some((_, head)) = head.filter(|head| head.0 == volume)
            && head <= read.start
            && head + PASSED > read.start
        {
            read.start = head;
        }
        Some((volume, read))
    }

    /// Those of these blocks that are neither in RAM nor on the fast tier.
    fn absent(&self, blocks: Blocks) -> u16 {
        let cell = self.cells.find(blocks.extent).map(|at| self.cells.get(at));
        let entry = cell.and_then(|cell| self.present.get(cell.at()));
        blocks.mask & !entry.map_or(0, |entry| entry.ram | entry.fast)
    }
}

/// From the first of these blocks of an extent to the last.
fn span(extent: Extent, mask: u16) -> Range<u64> {
    let size = EXTENT_BLOCKS as u64;
    let start = extent.number * size;
    start + u64::from(mask.trailing_zeros())..start + size - u64::from(mask.leading_zeros())
}
