//! Decisions about moves: what a miss reads, what RAM and the fast tier evict, and what is promoted.

use crate::ahead::{REACH, Scene, UNLEARNT, Verdict};
use crate::cells::Cells;
use crate::neighbours::kind;
use crate::place::{Blocks, Extent, split};
use crate::policy::Policy;
use crate::present::Entry;
use std::ops::Range;
use units::EXTENT_BLOCKS;

/// Extents that are drawn to find the one that is worth least.
const DRAWN: usize = 64;
/// Number of samples, since not all have blocks on the fast tier.
const DRAWS: usize = 2 * DRAWN;
/// Blocks at the end of a read that are taken to learn of them.
const LEARNT: u64 = 8;
/// Blocks that a disk reads in less time than it seeks: 1.2 MiB.
pub(crate) const PASSED: u64 = 307;
/// Least chance, in chances of a block that was requested, for one that was not to be promoted with it,
/// be there ever so much room.
const LIKELY: f32 = 0.2;
/// Required value, relative to the threshold, of a block that was never used, beside a used one: the first
/// blocks asked for of an extent promise more of the others than comes true.
const UNUSED: f32 = 3.0;
/// Weight of a new sample of the victims' value.
const NEW_LOOK: f32 = 0.125;

/// Blocks to keep in RAM of what a miss reads.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The blocks.
    pub blocks: Blocks,
    /// Those of them that a host requested.
    pub asked: u16,
    origin: i16,
    scene: u8,
}

impl Arrival {
    /// For prefetched blocks.
    pub(crate) fn foreseen(blocks: Blocks) -> Self {
        Self {
            blocks,
            asked: 0,
            origin: 0,
            scene: UNLEARNT,
        }
    }
}

/// An extent that leaves RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// The extent.
    pub extent: Extent,
    /// Blocks of it that are to be written to the fast tier; they count as there already.
    pub promote: u16,
}

/// Decision about blocks evicted from RAM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Admission {
    /// Those that are to be written to the fast tier.
    pub promote: u16,
    /// The extent's value, as [`Heat::worth`](crate::Heat::worth); 0 if hosts requested none of them.
    pub worth: f32,
    /// The threshold; 0 while there was room.
    pub wanted: f32,
}

/// An extent that is to leave the fast tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The extent.
    pub extent: Extent,
    /// Its blocks there.
    pub fast: u16,
    /// Those of them that are nowhere else.
    pub dirty: u16,
}

impl Policy {
    /// A miss reads the blocks `first` to `end` of a volume, without `end`: what to read in their stead and in
    /// one go, which includes them. `head`: the block after the last that the disk read, if it is of this
    /// volume. What of it is to be kept in RAM goes to `keep`, which is
    /// emptied before; [`Policy::arrived`] has to be called for each when its data is there. The end may be beyond
    /// the volume's.
    pub fn fetch(
        &mut self,
        volume: u32,
        first: u64,
        end: u64,
        head: Option<u64>,
        keep: &mut Vec<Arrival>,
    ) -> Range<u64> {
        keep.clear();
        let scene = self.scene(volume, first, end).number();
        let mut read = first..end;
        for part in split(volume, first.saturating_sub(REACH), end + REACH) {
            let arrival = self.choose(part, first..end, scene, &mut read);
            keep.extend(arrival);
        }
        // A head that comes by reads on: what it has passed is not worth a seek, nor is a short gap.
        if let Some(head) = head
            && head <= first
            && head + PASSED > read.start
        {
            read.start = head;
        }
        // What was only to be tried is taken where the read passes it, or nearly so.
        let reached = read.start..read.end + LEARNT;
        keep.retain_mut(|arrival| {
            let number = arrival.blocks.extent.number;
            arrival.blocks.mask &= within(number, &reached);
            let mask = arrival.blocks.mask;
            let last = (number + 1) * EXTENT_BLOCKS as u64 - u64::from(mask.leading_zeros());
            if mask != 0 {
                read.end = read.end.max(last);
            }
            mask != 0
        });
        read
    }

    /// Of an extent near a miss: what is to be kept, and as far as that is worth it, read.
    fn choose(
        &mut self,
        part: Blocks,
        miss: Range<u64>,
        scene: u8,
        read: &mut Range<u64>,
    ) -> Option<Arrival> {
        let start = part.extent.number * EXTENT_BLOCKS as u64;
        let cell = self.cells.find(part.extent).map(|at| self.cells.get(at));
        let cell = cell.unwrap_or_default();
        let entry = self.present.get(cell.at());
        let there = entry.map_or(0, |entry| entry.fast | entry.ram);
        let (mut mask, mut asked, mut origin) = (0u16, 0u16, None);
        for index in ones(part.mask & !there) {
            let block = start + index;
            if miss.contains(&block) {
                asked |= 1 << index;
                continue;
            }
            let from = if block < miss.start {
                miss.start
            } else {
                miss.end - 1
            };
            let distance = block as i64 - from as i64;
            let known = cell.used >> index & 1 == 1;
            match self.ahead.judge(distance, scene, known, &mut self.random) {
                Verdict::Worth => *read = read.start.min(block)..read.end.max(block + 1),
                Verdict::Tried => {}
                Verdict::Not => continue,
            }
            mask |= 1 << index;
            origin.get_or_insert((from as i64 - start as i64) as i16);
        }
        (mask | asked != 0).then(|| Arrival {
            blocks: Blocks {
                extent: part.extent,
                mask: mask | asked,
            },
            asked,
            origin: origin.unwrap_or(0),
            scene,
        })
    }

    fn scene(&self, volume: u32, first: u64, end: u64) -> Scene {
        let size = EXTENT_BLOCKS as u64;
        let find = |number: u64| {
            let found = self.cells.find(Extent { volume, number })?;
            Some(self.cells.get(found)).filter(|cell| self.is_recent(*cell))
        };
        let was_used = |block: u64| {
            find(block / size).is_some_and(|cell| cell.used >> (block % size) & 1 == 1)
        };
        let middle = first / size;
        let near = (1..=4u64).filter(|far| {
            let before = middle.checked_sub(*far).and_then(find);
            before.is_some() || find(middle + far).is_some()
        });
        Scene {
            before: first.checked_sub(1).is_some_and(was_used),
            after: was_used(end),
            dense: near.count() >= 2,
        }
    }

    /// Blocks that were fetched are in RAM now. Some that are on the fast tier or in RAM already stay as
    /// they are.
    pub fn arrived(&mut self, arrival: &Arrival) {
        let cell = self.cells.find_or_make(arrival.blocks.extent);
        let used = self.cells.get(cell).used;
        let at = self.present.of(&mut self.cells, cell);
        let Some(entry) = self.present.get_mut(at) else {
            return;
        };
        let new = arrival.blocks.mask & !entry.fast & !entry.ram;
        let unasked = new & !arrival.asked;
        if entry.ram == 0 {
            (entry.touched, entry.ahead) = (0, 0);
            // What the miss itself asks for is used already; whether before, too, does not matter for it.
            entry.known = used;
        }
        if entry.ahead == 0 {
            (entry.origin, entry.scene) = (arrival.origin, arrival.scene);
        }
        entry.touched |= arrival.asked;
        entry.ahead |= unasked;
        let unasked = entry.ahead != 0;
        self.cells.get_mut(cell).set_came_unasked(unasked);
        if new == 0 {
            self.present.tidy(&mut self.cells, at);
            return;
        }
        self.present.put_in_ram(at, new);
        self.present.renew(at);
    }

    /// As [`Policy::arrived`], of blocks that a host requested and that were read alone.
    pub fn came(&mut self, blocks: Blocks) {
        self.arrived(&Arrival {
            blocks,
            asked: blocks.mask,
            origin: 0,
            scene: 0,
        });
    }

    /// An extent that has to leave RAM for what came, if any has to, and what of it is to be promoted.
    pub fn leave_ram(&mut self) -> Option<Leaving> {
        if self.present.ram_blocks <= self.config.ram_blocks {
            return None;
        }
        let at = self.present.oldest()?;
        let entry = *self.present.get(at)?;
        let extent = self.cells.extent(entry.cell);
        let learnt = match entry.scene {
            UNLEARNT => 0,
            _ => entry.ahead & entry.ram,
        };
        for index in ones(learnt) {
            let is_set = |mask: u16| mask >> index & 1 == 1;
            let distance = index as i64 - i64::from(entry.origin);
            let (known, used) = (is_set(entry.known), is_set(entry.touched));
            self.ahead.left(distance, entry.scene, known, used);
        }
        self.present.take_from_ram(at, u16::MAX);
        let promote = self
            .admit(at, entry.ram, entry.touched, (1.0, self.is_full()))
            .promote;
        self.trail.asked(Blocks {
            extent,
            mask: entry.touched,
        });
        self.present.tidy(&mut self.cells, at);
        self.present.prefetch_oldest(&self.cells);
        Some(Leaving { extent, promote })
    }

    /// As [`Policy::leave_ram`], for an owner that has an order of its own: these blocks leave RAM, where hosts requested those
    /// in `touched`. What is to be promoted counts as being on the fast tier until [`Policy::placed`] says what
    /// came of it. `reluctance`: factor of the margin.
    pub fn left_ram(&mut self, blocks: Blocks, touched: u16, reluctance: f32) -> Admission {
        let cell = self.cells.find_or_make(blocks.extent);
        let at = self.present.of(&mut self.cells, cell);
        let admission = self.admit(
            at,
            blocks.mask,
            touched,
            (reluctance, self.is_nearly_full()),
        );
        self.trail.asked(Blocks {
            mask: touched,
            ..blocks
        });
        self.present.tidy(&mut self.cells, at);
        admission
    }

    /// Which blocks of those that leave RAM are worth a place on the fast tier; they get it.
    fn admit(
        &mut self,
        at: u32,
        ram: u16,
        touched: u16,
        (reluctance, tier_is_full): (f32, bool),
    ) -> Admission {
        let mut admission = Admission {
            promote: 0,
            worth: 0.0,
            wanted: 0.0,
        };
        let Some(entry) = self.present.get(at).copied() else {
            return admission;
        };
        let cell = self.cells.get(entry.cell);
        let absent = ram & !entry.fast;
        let kept = touched | entry.fast;
        let untouched = absent & !touched;
        let kind = kind(cell.uses(), cell.used, kept);
        let (mut promote, mut is_full) = (0u16, false);
        if touched != 0 {
            let worth = self.worth(cell, kept.count_ones());
            is_full = tier_is_full;
            let bar = match is_full {
                true => self.bar * self.margin * reluctance,
                false => 0.0,
            };
            admission.worth = self.for_a_block(worth);
            admission.wanted = self.for_a_block(bar);
            if worth >= bar {
                promote |= absent & touched;
            }
            promote |= untouched & self.neighbours_worth(kind, worth, bar, cell.used);
        }
        if is_full {
            self.promoted += u64::from(promote.count_ones());
        }
        self.present.set_fast(at, entry.fast | promote);
        if let Some(left) = self.present.get_mut(at) {
            (left.touched, left.ahead) = (kept, untouched);
            (left.known, left.kind) = (cell.used, kind);
            self.cells
                .get_mut(left.cell)
                .set_came_unasked(untouched != 0);
        }
        admission.promote = promote;
        admission
    }

    /// Which blocks of an extent exceed the threshold though they were not requested this time; `used`: those that
    /// were requested before.
    fn neighbours_worth(&self, kind: u8, worth: f32, bar: f32, used: u16) -> u16 {
        let of = [(true, used, bar), (false, !used, bar * UNUSED)];
        let worth = of.into_iter().filter(|(known, _, bar)| {
            let chance = self.neighbours.chance(kind, *known);
            chance >= LIKELY && worth * chance >= *bar
        });
        worth.fold(0, |all, (_, blocks, _)| all | blocks)
    }

    /// Blocks on the fast tier beyond what it may hold.
    pub fn fast_excess(&self) -> u64 {
        self.present
            .fast_blocks
            .saturating_sub(self.config.fast_blocks)
    }

    /// The extent that should leave the fast tier next: of some that are drawn the one that is worth
    /// least. Its eviction has to be reported with [`Policy::left_fast`].
    pub fn victim(&mut self) -> Option<Victim> {
        self.victim_where(|_, _| Some(1.0))
    }

    /// As [`Policy::victim`], of the extents of which something on the fast tier is a copy.
    pub fn clean_victim(&mut self) -> Option<Victim> {
        self.clean_victim_of(|_| true)
    }

    /// As [`Policy::clean_victim`], of the volumes that `is_one` says.
    pub fn clean_victim_of(&mut self, is_one: impl Fn(u32) -> bool) -> Option<Victim> {
        self.clean_victim_by(|volume| is_one(volume).then_some(1.0))
    }

    /// The same, with a factor for the value of a volume's data; `None`: the volume is excluded.
    pub fn clean_victim_by(&mut self, weight: impl Fn(u32) -> Option<f32>) -> Option<Victim> {
        self.victim_where(|entry, cells| match entry.fast & !entry.dirty {
            0 => None,
            _ => weight(cells.extent(entry.cell).volume),
        })
    }

    fn victim_where(&mut self, weight: impl Fn(&Entry, &Cells) -> Option<f32>) -> Option<Victim> {
        let (at, worth) = self.draw(weight)?;
        self.raise_or_lower_bar(worth);
        let entry = self.present.get(at)?;
        Some(Victim {
            extent: self.cells.extent(entry.cell),
            fast: entry.fast,
            dirty: entry.dirty,
        })
    }

    /// Whether all of these blocks are on the fast tier.
    pub fn is_fast(&self, blocks: Blocks) -> bool {
        let cell = self.cells.find(blocks.extent).map(|at| self.cells.get(at));
        let entry = cell.and_then(|cell| self.present.get(cell.at()));
        entry.is_some_and(|entry| blocks.mask & !entry.fast == 0)
    }

    /// Blocks of an extent that only the fast tier has.
    pub fn dirty(&self, extent: Extent) -> u16 {
        let cell = self.cells.find(extent).map(|at| self.cells.get(at));
        let entry = cell.and_then(|cell| self.present.get(cell.at()));
        entry.map_or(0, |entry| entry.dirty)
    }

    /// Blocks were written to the slow tier: the fast one has copies.
    pub fn sank(&mut self, blocks: Blocks) {
        let Some(at) = self.cells.find(blocks.extent) else {
            return;
        };
        if let Some(entry) = self.present.get_mut(self.cells.get(at).at()) {
            entry.dirty &= !blocks.mask;
        }
    }

    /// Blocks are not on the fast tier any longer, or never came to be.
    pub fn left_fast(&mut self, blocks: Blocks) {
        let Some(cell) = self.cells.find(blocks.extent) else {
            return;
        };
        let at = self.cells.get(cell).at();
        if let Some(fast) = self.present.get(at).map(|entry| entry.fast) {
            self.present.set_fast(at, fast & !blocks.mask);
            self.present.tidy(&mut self.cells, at);
        }
    }

    /// Examines what a victim would be worth now: nothing may have left for long.
    pub(crate) fn look_at_bar(&mut self) {
        if let Some((_, worth)) = self.draw(|_, _| Some(1.0)) {
            self.raise_or_lower_bar(worth);
        }
    }

    fn raise_or_lower_bar(&mut self, worth: f32) {
        self.bar += (worth - self.bar) * NEW_LOOK;
    }

    fn draw(&mut self, weight: impl Fn(&Entry, &Cells) -> Option<f32>) -> Option<(u32, f32)> {
        let (mut best, mut drawn): (Option<(u32, f32, f32)>, _) = (None, 0);
        for _ in 0..DRAWS {
            if drawn == DRAWN || self.present.len() == 0 {
                break;
            }
            let at = self.random.below(self.present.len()) as u32;
            let fits = |entry: &Entry| {
                let weight = match entry.fast {
                    0 => None,
                    _ => weight(entry, &self.cells),
                };
                weight.filter(|_| !self.is_held(entry.cell))
            };
            let entry = self.present.get(at);
            let Some((entry, weight)) = entry.and_then(|entry| Some((entry, fits(entry)?))) else {
                continue;
            };
            drawn += 1;
            let worth = self.worth(self.cells.get(entry.cell), entry.fast.count_ones());
            if best.is_none_or(|(_, _, least)| worth * weight < least) {
                best = Some((at, worth, worth * weight));
            }
        }
        best.map(|(at, worth, _)| (at, worth))
    }
}

/// The blocks of an extent that are in a range.
fn within(number: u64, range: &Range<u64>) -> u16 {
    let size = EXTENT_BLOCKS as u64;
    let low = range.start.saturating_sub(number * size).min(size);
    let high = range.end.saturating_sub(number * size).min(size);
    ((1u32 << high) - (1u32 << low)) as u16
}

/// The numbers of the bits that are set, from the lowest.
fn ones(mut mask: u16) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let index = (mask != 0).then(|| u64::from(mask.trailing_zeros()))?;
        mask &= mask - 1;
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Config;

    #[test]
    fn a_block_that_nobody_ever_used_has_to_be_worth_more_to_come_along() {
        let mut policy = Policy::new(Config {
            fast_blocks: 100,
            ram_blocks: 10,
            margin: 1.0,
            seed: 1,
        });
        for known in [true, false] {
            (0..100).for_each(|_| policy.neighbours.learn((3, known), 0b11, 0b10, 0b01));
        }
        let used = 0b1100;
        let worth = |worth: f32| policy.neighbours_worth(3, worth, 1.0, used);
        assert_eq!(worth(0.9), 0);
        assert_eq!(worth(2.0), used);
        assert_eq!(worth(4.0), u16::MAX);
    }
}
