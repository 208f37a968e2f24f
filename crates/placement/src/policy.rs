//! The policy as a whole: its inputs, and its immediate decisions.
//!
//! The owner of the data reports every use, carries out the decisions, and reports that. Nothing here
//! waits, reads a clock or allocates for an extent whose region was used before.

use crate::age::{FORGOTTEN, TICKS_PER_FILL, Tick};
use crate::ahead::Ahead;
use crate::cells::{CellAt, Cells};
use crate::hash::Random;
use crate::hazard::{Hazard, USES_MAX};
use crate::neighbours::Neighbours;
use crate::place::{Blocks, Extent};
use crate::present::Present;
use crate::trail::Trail;
use std::ops::Range;
use units::EXTENT_BLOCKS;

/// Ticks between adjustments of the margin: a quarter of the fast tier.
const LOOK_TICKS: u32 = TICKS_PER_FILL / 4;
/// Uses that follow each other while hosts use this part of what RAM holds, a half, are one: RAM answers those by
/// itself. A longer time would take uses that the slow tier had to answer for nothing, and what is
/// used most often, for what is used once.
const BURST_PART: u64 = 2;
/// How much less each block of a larger extent is worth: it saves the same seek together with
/// more of them. Less than one, as not every use asks for all.
const SHARING: f32 = 0.7;
/// Blocks promoted into a full tier for a block that hosts use, beyond which the policy gets more reluctant.
const PROMOTED_MOST: f32 = 0.35;
/// The part of the fast tier that may be free when it is nearly full.
const NEARLY_FULL: u64 = 32;
/// How much the power to which the margin is taken changes at each look, and how far it may rise.
const POWER_STEP: f32 = 0.05;
const POWER_MOST: f32 = 2.0;

/// Sizes, and how reluctant to be.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Blocks of the fast tier that data may take.
    pub fast_blocks: u64,
    /// Blocks of RAM.
    pub ram_blocks: u64,
    /// How many times as much as what it displaces something has to be worth to be promoted: 43 writes
    /// little, 1 takes whatever is better. While much is promoted nevertheless the policy takes more, up to the
    /// square of this.
    pub margin: f32,
    /// Where chance begins.
    pub seed: u64,
}

/// Where the blocks of a read are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// In RAM.
    pub ram: u16,
    /// On the fast tier, and not in RAM.
    pub fast: u16,
    /// On the slow tier alone.
    pub absent: u16,
    /// Hosts come to the extent again: some are on the slow tier alone, or the extent came to RAM unasked and none of it
    /// was requested since. [`Policy::follow`] may be called for them.
    pub is_new: bool,
}

/// Why an extent is where it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heat {
    /// Times that it was used, bursts counted once; 15 stands for more, too.
    pub uses: u8,
    /// Blocks that hosts used anywhere since its last use, to a 32nd of the fast tier.
    pub idle_blocks: u64,
    /// Uses to be expected while hosts use a block, and for each block that it keeps there.
    pub worth: f32,
    /// The value of data that recently left the fast tier, in the same unit.
    pub bar: f32,
    /// The value required for promotion at present; 0 while there is room.
    pub wanted: f32,
}

/// Decides for the extents of one owner: a shard.
pub struct Policy {
    pub(crate) config: Config,
    pub(crate) cells: Cells,
    pub(crate) present: Present,
    pub(crate) ahead: Ahead,
    pub(crate) trail: Trail,
    pub(crate) neighbours: Neighbours,
    pub(crate) random: Random,
    /// The approximate value of the next victim on the fast tier.
    pub(crate) bar: f32,
    /// The margin that holds now.
    pub(crate) margin: f32,
    /// Blocks promoted into a full tier since the last look.
    pub(crate) promoted: u64,
    /// Extents that were promoted without a request, and used since: see [`Policy::take_seeks_saved`].
    seeks_saved: u32,
    /// Extents that do not leave the fast tier, by volume: in order, apart from each other.
    held: Vec<(u32, Range<u64>)>,
    /// The power of the margin that was configured.
    power: f32,
    hazard: Hazard,
    now: Tick,
    /// Blocks until the next tick.
    tick_left: u64,
    tick_blocks: u64,
    look_left: u32,
    /// Ticks within which uses are one.
    burst: u16,
    /// The share of an extent's value per block, by their number, since they share a seek.
    shares: [f32; EXTENT_BLOCKS + 1],
}

impl Policy {
    /// A policy without statistics.
    pub fn new(config: Config) -> Self {
        let (tick_blocks, burst) = times(&config);
        let mut shares = [1.0; EXTENT_BLOCKS + 1];
        for (blocks, share) in shares.iter_mut().enumerate().skip(1) {
            *share = (blocks as f32).powf(-SHARING);
        }
        Self {
            config,
            cells: Cells::new(),
            present: Present::new(),
            ahead: Ahead::new(),
            trail: Trail::new(),
            neighbours: Neighbours::new(),
            random: Random::new(config.seed),
            bar: 0.0,
            margin: config.margin,
            promoted: 0,
            seeks_saved: 0,
            held: Vec::new(),
            power: 1.0,
            hazard: Hazard::new(),
            now: Tick::default(),
            tick_left: tick_blocks,
            tick_blocks,
            look_left: LOOK_TICKS,
            burst,
            shares,
        }
    }

    /// A host reads blocks of an extent: where they are.
    pub fn read(&mut self, blocks: Blocks) -> Found {
        let cell = self.cells.find_or_make(blocks.extent);
        let at = self.cells.get(cell).at();
        // It is fetched while the use is noted.
        self.present.prefetch(at);
        self.used(cell, blocks.mask);
        let Some(entry) = self.present.get_mut(at) else {
            return Found {
                absent: blocks.mask,
                is_new: true,
                ..Found::default()
            };
        };
        let absent = blocks.mask & !entry.ram & !entry.fast;
        let found = Found {
            ram: blocks.mask & entry.ram,
            fast: blocks.mask & entry.fast & !entry.ram,
            absent,
            is_new: absent != 0 || entry.ram & entry.ahead != 0 && entry.touched == 0,
        };
        if entry.ram == 0 {
            return found;
        }
        entry.touched |= blocks.mask;
        self.renew_near(cell);
        self.present.renew(at);
        found
    }

    /// Extents that were filled beside a used extent are likely to be next.
    fn renew_near(&mut self, cell: CellAt) {
        for near in self.cells.beside(cell).into_iter().flatten() {
            let entry = self.present.get(near);
            if entry.is_some_and(|entry| entry.ram & !entry.touched != 0) {
                self.present.renew(near);
            }
        }
    }

    /// A host writes blocks of an extent: they are on the fast tier now, and nowhere else.
    pub fn wrote(&mut self, blocks: Blocks) {
        let cell = self.cells.find_or_make(blocks.extent);
        self.used(cell, blocks.mask);
        let at = self.present.of(&mut self.cells, cell);
        self.present.take_from_ram(at, blocks.mask);
        let Some(entry) = self.present.get(at).copied() else {
            return;
        };
        self.present.set_fast(at, entry.fast | blocks.mask);
        if let Some(entry) = self.present.get_mut(at) {
            entry.dirty |= blocks.mask;
        }
    }

    /// A host uses blocks of an extent, wherever they are.
    pub fn used_by_host(&mut self, blocks: Blocks) {
        let cell = self.cells.find_or_make(blocks.extent);
        self.used(cell, blocks.mask);
    }

    /// An extent is about to be used: what is known of it, far apart in memory, is fetched meanwhile.
    #[inline]
    pub fn prefetch(&self, extent: Extent) {
        self.cells.prefetch(extent);
    }

    /// The second step of that, for a use that asks or tells where its blocks are: to be called when the first is done.
    #[inline]
    pub fn prefetch_entry(&self, extent: Extent) {
        if let Some(cell) = self.cells.find(extent) {
            self.present.prefetch(self.cells.get(cell).at());
        }
    }

    /// An extent was promoted without a request, with its surroundings.
    pub fn rose_unasked(&mut self, extent: Extent) {
        let Some(cell) = self.cells.find(extent) else {
            return;
        };
        let cell = self.cells.get_mut(cell);
        if let Some(entry) = self.present.get_mut(cell.at()) {
            (entry.touched, entry.ahead) = (0, entry.fast);
            cell.set_came_unasked(true);
        }
    }

    /// Of extents that rose so, how many hosts used for the first time since it was asked last.
    pub fn take_seeks_saved(&mut self) -> u32 {
        std::mem::take(&mut self.seeks_saved)
    }

    /// Blocks of an extent on the fast tier, according to its owner's map; `dirty` ones are nowhere else.
    pub fn placed(&mut self, extent: Extent, fast: u16, dirty: u16) {
        let known = self.cells.find(extent);
        let cell = match known {
            None if fast == 0 => return,
            None => self.cells.find_or_make(extent),
            Some(cell) => cell,
        };
        if fast == 0 && self.present.get(self.cells.get(cell).at()).is_none() {
            return;
        }
        let at = self.present.of(&mut self.cells, cell);
        self.present.set_fast(at, fast);
        if let Some(entry) = self.present.get_mut(at) {
            entry.dirty = dirty & fast;
        }
        self.present.tidy(&mut self.cells, at);
    }

    /// The fast tier has grown or shrunk to `fast_blocks`. What was learned of times counts as it is.
    pub fn resize(&mut self, fast_blocks: u64) {
        if self.config.fast_blocks == fast_blocks {
            return;
        }
        self.config.fast_blocks = fast_blocks;
        (self.tick_blocks, self.burst) = times(&self.config);
        self.tick_left = self.tick_left.min(self.tick_blocks);
    }

    /// RAM has grown or shrunk to `ram_blocks`.
    pub fn resize_ram(&mut self, ram_blocks: u64) {
        self.config.ram_blocks = ram_blocks;
        (self.tick_blocks, self.burst) = times(&self.config);
        self.tick_left = self.tick_left.min(self.tick_blocks);
    }

    /// These extents, by volume, do not leave the fast tier from now on, and others do again.
    pub fn hold(&mut self, mut extents: Vec<(u32, Range<u64>)>) {
        extents.sort_unstable_by_key(|(volume, range)| (*volume, range.start));
        self.held = extents;
    }

    /// Whether an extent does not leave the fast tier.
    pub(crate) fn is_held(&self, cell: CellAt) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let Extent { volume, number } = self.cells.extent(cell);
        let after =
            (self.held).partition_point(|(of, range)| (*of, range.start) <= (volume, number));
        let before = after.checked_sub(1).map(|at| &self.held[at]);
        before.is_some_and(|(of, range)| *of == volume && range.contains(&number))
    }

    /// Blocks have no content any longer, or another one that is on the slow tier.
    pub fn discarded(&mut self, blocks: Blocks) {
        let Some(cell) = self.cells.find(blocks.extent) else {
            return;
        };
        let at = self.cells.get(cell).at();
        let Some(fast) = self.present.get(at).map(|entry| entry.fast) else {
            return;
        };
        self.present.take_from_ram(at, blocks.mask);
        self.present.set_fast(at, fast & !blocks.mask);
        self.present.tidy(&mut self.cells, at);
    }

    /// A volume is gone, with all that it had. Takes time in proportion to what the owner knows.
    pub fn forget(&mut self, volume: u32) {
        for cell in self.cells.present_of(volume) {
            let at = self.cells.get(cell).at();
            self.present.take_from_ram(at, u16::MAX);
            self.present.set_fast(at, 0);
            self.present.tidy(&mut self.cells, at);
        }
        self.cells.forget(volume);
    }

    /// Statistics of an extent.
    pub fn explain(&self, extent: Extent) -> Heat {
        let cell = self.cells.find(extent).map(|at| self.cells.get(at));
        let cell = cell.unwrap_or_default();
        let fast = self.present.get(cell.at()).map_or(0, |entry| entry.fast);
        let worth = self.for_a_block(self.worth(cell, fast.count_ones()));
        let bar = self.for_a_block(self.bar);
        Heat {
            uses: cell.uses(),
            idle_blocks: u64::from(self.now.since(cell.last())) * self.tick_blocks,
            worth: if cell.uses() == 0 { 0.0 } else { worth },
            bar,
            wanted: if self.is_full() {
                bar * self.margin
            } else {
                0.0
            },
        }
    }

    /// Whether another extent has no room on the fast tier unless one leaves.
    pub(crate) fn is_full(&self) -> bool {
        self.present.fast_blocks + EXTENT_BLOCKS as u64 > self.config.fast_blocks
    }

    /// Whether the fast tier has what it may hold but for a 32nd, which an owner keeps free who makes room before it is needed.
    pub fn is_nearly_full(&self) -> bool {
        self.present.fast_blocks + self.config.fast_blocks / NEARLY_FULL > self.config.fast_blocks
    }

    /// The expected uses per tick, relative to those while hosts use a block.
    pub(crate) fn for_a_block(&self, worth: f32) -> f32 {
        worth / self.tick_blocks as f32
    }

    /// Uses to be expected in a tick of an extent, for each of the blocks that it keeps.
    pub(crate) fn worth(&self, cell: crate::cells::Cell, blocks: u32) -> f32 {
        let age = self.now.since(cell.last());
        let older = 1.0 - f32::from(age) * 1e-5;
        self.hazard.index(cell.uses(), age) * self.shares[blocks as usize] * older
    }

    /// Whether an extent was used in this tick or the last.
    pub(crate) fn is_recent(&self, cell: crate::cells::Cell) -> bool {
        cell.uses() > 0 && self.now.since(cell.last()) <= 1
    }

    /// Notes a use: how often, when and in which blocks extents are used.
    fn used(&mut self, at: CellAt, mask: u16) {
        let now = self.now;
        let cell = self.cells.get_mut(at);
        let (uses, age) = (cell.uses(), now.since(cell.last()));
        if uses == 0 || age >= FORGOTTEN {
            self.hazard.began(1);
            cell.see(1, now);
        } else if age < self.burst {
            self.hazard.went_on(uses, age);
            cell.see(uses, now);
        } else {
            let next = (uses + 1).min(USES_MAX);
            self.hazard.ended(uses, age);
            self.hazard.began(next);
            cell.see(next, now);
        }
        cell.used |= mask;
        if cell.came_unasked() {
            self.learn_of_unasked(at, mask, age);
        }
        self.pass(u64::from(mask.count_ones()));
    }

    /// Learns which of the blocks that an extent had unasked are used, at its first use since it left RAM.
    #[cold]
    fn learn_of_unasked(&mut self, at: CellAt, used: u16, age: u16) {
        let cell = self.cells.get_mut(at);
        let Some(entry) = self.present.get_mut(cell.at()) else {
            return;
        };
        if entry.ram != 0 {
            return;
        }
        if entry.touched == 0 {
            self.seeks_saved += 1;
        } else if u32::from(age) <= TICKS_PER_FILL {
            for (known, of) in [(true, entry.known), (false, !entry.known)] {
                let (kind, untouched) = ((entry.kind, known), entry.ahead & of);
                let neighbours = &mut self.neighbours;
                neighbours.learn(kind, used, untouched, entry.touched);
            }
        }
        entry.ahead = 0;
        cell.set_came_unasked(false);
    }

    /// Advances time by a number of used blocks.
    fn pass(&mut self, blocks: u64) {
        if self.tick_left > blocks {
            self.tick_left -= blocks;
            return;
        }
        self.tick_left = self.tick_blocks;
        self.now = self.now.next();
        self.hazard.tick();
        self.cells.sweep(self.now);
        self.look_left -= 1;
        if self.look_left == 0 {
            self.look_left = LOOK_TICKS;
            self.look_at_margin();
        }
        self.look_at_bar();
    }

    /// Where much is promoted for what hosts use, what is worth it by less is left out from now on: a margin that
    /// fits one load lets another write the tier full time and again.
    fn look_at_margin(&mut self) {
        let used = u64::from(LOOK_TICKS) * self.tick_blocks;
        let step = match self.promoted as f32 > PROMOTED_MOST * used as f32 {
            true => POWER_STEP,
            false => -POWER_STEP,
        };
        self.promoted = 0;
        self.power = (self.power + step).clamp(1.0, POWER_MOST);
        self.margin = self.config.margin.powf(self.power);
    }
}

/// Blocks that hosts use in a tick, and the ticks within which uses are one.
fn times(config: &Config) -> (u64, u16) {
    let all = config.fast_blocks + config.ram_blocks;
    let tick = (all / u64::from(TICKS_PER_FILL)).max(1);
    let burst = config.ram_blocks.div_ceil(BURST_PART * tick);
    (tick, burst.min(u64::from(FORGOTTEN)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(margin: f32) -> Policy {
        Policy::new(Config {
            fast_blocks: 960,
            ram_blocks: 0,
            margin,
            seed: 1,
        })
    }

    fn one(number: u64) -> Blocks {
        let extent = Extent { volume: 1, number };
        Blocks { extent, mask: 1 }
    }

    /// Uses as many blocks as the fast tier has, some times over, and promotes a share of them.
    fn promote(policy: &mut Policy, share: f32) {
        for number in 0..9_600 {
            policy.read(one(number));
            policy.promoted += u64::from(policy.random.happens(share));
        }
    }

    #[test]
    fn while_much_is_promoted_the_margin_rises_and_afterwards_it_is_what_was_configured() {
        let mut policy = policy(10.0);
        promote(&mut policy, 0.2);
        assert_eq!(policy.margin, 10.0);
        promote(&mut policy, 0.6);
        assert!((95.0..100.1).contains(&policy.margin), "{}", policy.margin);
        promote(&mut policy, 0.2);
        assert_eq!(policy.margin, 10.0);
    }

    #[test]
    fn what_is_to_take_whatever_is_better_does_so_however_much_that_is() {
        let mut policy = policy(1.0);
        promote(&mut policy, 1.0);
        assert_eq!(policy.margin, 1.0);
    }

    #[test]
    fn an_owner_with_an_order_of_its_own_is_told_the_same() {
        let mut policy = policy(1.0);
        let extent = one(7).extent;
        policy.used_by_host(one(7));
        let mask = 0b1111;
        let left = policy.left_ram(Blocks { extent, mask }, 0b1, 1.0);
        assert_eq!((left.promote & 0b1, left.wanted), (0b1, 0.0));
        assert!(policy.is_fast(one(7)));
        policy.placed(extent, 0b11, 0b10);
        assert_eq!(policy.dirty(extent), 0b10);
        let victim = policy.clean_victim().unwrap();
        assert_eq!(
            (victim.extent, victim.fast, victim.dirty),
            (extent, 0b11, 0b10)
        );
        policy.placed(extent, 0b11, 0b11);
        assert_eq!(policy.clean_victim(), None);
        assert!(policy.victim().is_some());
        policy.placed(extent, 0, 0);
        assert!(policy.victim().is_none() && !policy.is_fast(one(7)));
        assert_eq!(policy.explain(extent).wanted, 0.0);
        policy.resize(10);
        assert!(!policy.is_nearly_full());
        policy.placed(one(8).extent, u16::MAX, 0);
        assert!(policy.is_nearly_full());
        assert_eq!(policy.fast_excess(), 6);
        // Its moves are reported with the deciding figures.
        policy.bar = 4.0;
        let left = policy.left_ram(one(7), 0b1, 1.0);
        let heat = policy.explain(extent);
        assert_eq!((left.worth, left.wanted), (heat.worth, heat.wanted));
        assert_eq!(left.promote != 0, left.worth >= left.wanted);
        assert!(heat.wanted > 0.0 && heat.bar == heat.wanted);
    }

    /// Extents that are on the fast tier, each used as often.
    fn placed(extents: impl Iterator<Item = Extent>) -> Policy {
        let mut policy = policy(1.0);
        for extent in extents {
            policy.used_by_host(Blocks { extent, mask: 1 });
            policy.placed(extent, u16::MAX, 0);
        }
        policy
    }

    #[test]
    fn what_is_held_is_no_victim_until_it_is_let_go() {
        let mut policy = placed((0..40).map(|number| one(number).extent));
        policy.hold(vec![(1, 20..40), (1, 0..19), (2, 0..100)]);
        // Of 64 that are drawn none may be the one.
        let victims = (0..100).filter_map(|_| policy.clean_victim());
        let numbers: Vec<u64> = victims.map(|victim| victim.extent.number).collect();
        assert!(numbers.len() > 50 && numbers.iter().all(|number| *number == 19));
        policy.hold(vec![(1, 0..40)]);
        assert_eq!(policy.clean_victim(), None);
        policy.hold(Vec::new());
        assert!(policy.clean_victim().is_some());
    }

    #[test]
    fn victims_can_be_those_of_some_volumes_alone() {
        let of = |volume| (0..20).map(move |number| Extent { volume, number });
        let mut policy = placed(of(1).chain(of(2)));
        for volume in [1, 2] {
            let victim = policy.clean_victim_of(|it| it == volume);
            assert_eq!(victim.map(|victim| victim.extent.volume), Some(volume));
        }
        assert_eq!(policy.clean_victim_of(|it| it == 3), None);
    }

    #[test]
    fn what_is_worth_more_by_its_volume_leaves_last() {
        let of = |volume| (0..20).map(move |number| Extent { volume, number });
        let mut policy = placed(of(1).chain(of(2)));
        let mut left = |weight: [f32; 2]| {
            let victims = (0..100).filter_map(|_| {
                policy.clean_victim_by(|volume| weight.get(volume as usize - 1).copied())
            });
            victims.filter(|victim| victim.extent.volume == 1).count()
        };
        assert_eq!([left([100.0, 1.0]), left([0.01, 1.0])], [0, 100]);
    }

    #[test]
    fn a_reluctant_owner_promotes_less_and_an_eager_one_more() {
        let promoted = |reluctance: f32| {
            let mut policy = policy(10.0);
            (0..400).for_each(|number| policy.wrote(one(number % 100)));
            (100..160).for_each(|number| policy.placed(one(number).extent, u16::MAX, 0));
            let worth = policy.explain(one(7).extent).worth * policy.tick_blocks as f32;
            // The bar is such that the extent is worth it by half.
            policy.bar = worth / policy.margin / 0.5;
            policy.placed(one(7).extent, 0, 0);
            let extent = one(7).extent;
            policy
                .left_ram(Blocks { extent, mask: 1 }, 1, reluctance)
                .promote
                == 1
        };
        assert_eq!([0.125, 1.0, 8.0].map(promoted), [true, false, false]);
    }

    #[test]
    fn what_rose_unasked_has_saved_a_seek_once_it_is_used() {
        let mut policy = policy(10.0);
        for number in 0..3 {
            policy.placed(one(number).extent, u16::MAX, 0);
            policy.rose_unasked(one(number).extent);
        }
        // One that was evicted before it was requested, and one that was never there.
        policy.placed(one(2).extent, 0, 0);
        policy.rose_unasked(one(9).extent);
        for number in [0, 0, 2, 9] {
            policy.used_by_host(one(number));
        }
        assert_eq!(policy.take_seeks_saved(), 1);
        assert_eq!(policy.take_seeks_saved(), 0);
    }

    #[test]
    fn what_is_promoted_counts_once_the_tier_is_full() {
        let mut policy = policy(0.0);
        policy.came(one(1));
        assert_eq!(policy.leave_ram().map(|it| it.promote), Some(1));
        assert_eq!(policy.promoted, 0);
        (1_000..2_000).for_each(|number| policy.wrote(one(number)));
        let before = policy.promoted;
        policy.read(one(5));
        policy.came(one(5));
        assert_eq!(policy.leave_ram().map(|it| it.promote), Some(1));
        assert_eq!(policy.promoted, before + 1);
    }
}
