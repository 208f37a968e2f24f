//! Statistics of hosts' accesses, and queries of placement decisions.
//!
//! [`AccessStats`] owns the placement policy (docs/placement.md), the regions in which misses are dense, and the forecast
//! for other sizes of the tiers. Map, cache and io only tell it what happened (`note_*`, `forget_*`) or have the processor
//! fetch what that will need (`prefetch_*`); tiering asks it what is worth a place, and what is not. Until the shard
//! serves it learns nothing, and answers as if nothing were known. Invariants: what the policy takes for placed is what pages
//! say (`Shard::tell_placed` in the same borrow as each change); an initiator that is bypassed leaves no trace.

use super::what_if::Forecast;
use crate::map::layer_table::Placed;
use crate::map::page::MapPage;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use format::BlockMask;
use placement::{Admission, Arrival, Blocks, Config, Extent, Heat, Policy, Regions, Victim};
use qos::Due;
use std::ops::Range;
use units::{BLOCK, CHUNK_EXTENTS, EXTENT_BLOCKS};

/// Required ratio of an extent's value to that of the data it displaces for promotion.
const MARGIN: f32 = 43.0;

/// An extent of a chunk, as the policy names it: by layer.
pub(crate) fn extent_of((layer, chunk): (u32, u32), extent: usize) -> Extent {
    Extent {
        volume: layer,
        number: u64::from(chunk) * CHUNK_EXTENTS as u64 + extent as u64,
    }
}

/// The chunk of an extent, and which of its extents that is.
pub(crate) fn chunk_of(extent: Extent) -> ((u32, u32), usize) {
    let size = CHUNK_EXTENTS as u64;
    let chunk = (extent.number / size) as u32;
    ((extent.volume, chunk), (extent.number % size) as usize)
}

/// The blocks of a mask that an extent has; bit 0 is its first.
pub(super) fn in_extent(blocks: &BlockMask, extent: usize) -> u16 {
    let first = extent * EXTENT_BLOCKS;
    (0..EXTENT_BLOCKS).fold(0, |mask, at| mask | u16::from(blocks.has(first + at)) << at)
}

/// Which volume's host uses blocks, and how.
#[derive(Clone, Copy)]
pub(crate) struct By {
    pub volume: u32,
    pub write: bool,
    /// The volume bypasses its initiator: it is served, and ignored by placement.
    pub bypassed: bool,
    /// By its volume's policy. Operations that do not wait need none.
    pub due: Due,
}

impl By {
    pub fn read(volume: u32) -> Self {
        Self {
            volume,
            write: false,
            bypassed: false,
            due: Due::NONE,
        }
    }

    pub fn write(volume: u32) -> Self {
        let write = true;
        Self {
            write,
            ..Self::read(volume)
        }
    }

    /// The same with the operation's scheduling parameters.
    pub fn due(self, due: Due) -> Self {
        Self { due, ..self }
    }

    /// The same of an initiator that may be bypassed.
    pub fn bypassed(self, bypassed: bool) -> Self {
        Self { bypassed, ..self }
    }
}

/// Statistics of hosts' accesses: which extents are worth a place on the fast tier, where misses are dense, and what
/// other sizes of the tiers would give.
pub(crate) struct AccessStats {
    regions: Regions,
    /// `None` before the shard serves: a shard that is only inspected needs none.
    policy: Option<Box<Policy>>,
    forecast: Forecast,
}

impl AccessStats {
    /// Nothing is learned before [`AccessStats::begin`].
    pub fn new() -> Self {
        Self {
            regions: Regions::new(0),
            policy: None,
            forecast: Forecast::default(),
        }
    }

    /// The shard serves from now on, with tiers of these sizes.
    fn begin(&mut self, config: Config) {
        self.regions = Regions::new(config.fast_blocks);
        self.policy = Some(Box::new(Policy::new(config)));
    }

    /// Whether it serves: before that, nothing is moved.
    pub(super) fn are_begun(&self) -> bool {
        self.policy.is_some()
    }

    /// The fast tier is of this size now, in blocks.
    pub(super) fn resize(&mut self, fast_blocks: u64) {
        if let Some(policy) = &mut self.policy {
            policy.resize(fast_blocks);
            self.regions.resize(fast_blocks);
        }
    }

    /// And RAM of this one.
    pub(super) fn resize_ram(&mut self, ram_blocks: u64) {
        if let Some(policy) = &mut self.policy {
            policy.resize_ram(ram_blocks);
        }
    }

    /// The policy itself.
    #[cfg(test)]
    pub fn policy(&mut self) -> &mut Policy {
        self.policy.as_mut().expect("the shard serves")
    }

    /// Where misses are dense, for read-ahead.
    #[inline]
    pub fn regions(&mut self) -> &mut Regions {
        &mut self.regions
    }

    /// The same to examine.
    #[inline]
    pub fn dense(&self) -> &Regions {
        &self.regions
    }

    /// Forecasts for other sizes of the tiers.
    #[inline]
    pub fn forecast(&mut self) -> &mut Forecast {
        &mut self.forecast
    }

    /// A layer was removed.
    pub fn forget_layer(&mut self, layer: u32) {
        self.regions.forget(layer);
        if let Some(policy) = &mut self.policy {
            policy.forget(layer);
        }
        self.forecast.forget(layer);
    }

    /// A chunk has nothing on the fast tier.
    pub(super) fn forget_placed(&mut self, chunk: (u32, u32)) {
        self.note_placed(chunk, u16::MAX, |_| (0, 0));
    }

    /// Blocks of these extents of a chunk on the fast tier: blocks, and those of them that are dirty.
    fn note_placed(&mut self, chunk: (u32, u32), extents: u16, of: impl Fn(usize) -> (u16, u16)) {
        let Some(policy) = &mut self.policy else {
            return;
        };
        for at in (0..CHUNK_EXTENTS).filter(|at| extents >> at & 1 == 1) {
            let (fast, dirty) = of(at);
            policy.placed(extent_of(chunk, at), fast, dirty);
        }
    }

    /// A volume's host reads (or, `write`, writes) blocks of a layer's chunk.
    pub fn note_use(&mut self, by: By, chunk: (u32, u32), blocks: &BlockMask) {
        self.learn(by, chunk, blocks.blocks(), |policy| {
            let mut blocks = blocks.blocks().peekable();
            while let Some(first) = blocks.next() {
                let at = first / EXTENT_BLOCKS;
                let mut mask = 1 << (first % EXTENT_BLOCKS);
                while let Some(block) = blocks.next_if(|block| block / EXTENT_BLOCKS == at) {
                    mask |= 1 << (block % EXTENT_BLOCKS);
                }
                let extent = extent_of(chunk, at);
                policy.used_by_host(Blocks { extent, mask });
            }
        });
    }

    /// The same of one block.
    // As most uses are: nothing has to be gathered by extents.
    #[inline]
    pub fn note_use_of(&mut self, by: By, chunk: (u32, u32), block: usize) {
        self.learn(by, chunk, std::iter::once(block), |policy| {
            policy.used_by_host(Blocks {
                extent: extent_of(chunk, block / EXTENT_BLOCKS),
                mask: 1 << (block % EXTENT_BLOCKS),
            });
        });
    }

    #[inline]
    fn learn(
        &mut self,
        by: By,
        chunk: (u32, u32),
        blocks: impl Iterator<Item = usize> + Clone,
        use_all: impl FnOnce(&mut Policy),
    ) {
        if by.bypassed {
            return;
        }
        self.forecast.used(by.volume, chunk, blocks, by.write);
        let Some(policy) = &mut self.policy else {
            return;
        };
        self.regions.seen();
        use_all(policy);
        for _ in 0..policy.take_seeks_saved() {
            self.regions.saved();
        }
    }

    /// The same for blocks whose locations are in summaries.
    pub fn note_summarized(&mut self, by: By, chunk: u32, placed: &[Placed]) {
        for of_layer in placed.chunk_by(|one, next| one.layer == next.layer) {
            let blocks = of_layer.iter().map(|known| known.block).collect();
            self.note_use(by, (of_layer[0].layer, chunk), &blocks);
        }
    }

    /// Uses of the extent of a chunk that hosts used most, of those that have some of these blocks.
    pub fn most_uses(&self, chunk: (u32, u32), blocks: &BlockMask) -> u8 {
        let Some(policy) = &self.policy else {
            return 0;
        };
        let extents = (0..CHUNK_EXTENTS).filter(|at| in_extent(blocks, *at) != 0);
        let uses = extents.map(|at| policy.explain(extent_of(chunk, at)).uses);
        uses.max().unwrap_or(0)
    }

    /// Extents of a chunk that no host has used since the pool was opened, as far as known.
    fn unused(&self, chunk: (u32, u32)) -> u16 {
        let Some(policy) = &self.policy else {
            return u16::MAX;
        };
        let unused = |at: &usize| policy.explain(extent_of(chunk, *at)).uses == 0;
        (0..CHUNK_EXTENTS)
            .filter(unused)
            .fold(0, |mask, at| mask | 1 << at)
    }

    /// The policy's statistics of an extent.
    pub(super) fn explain(&self, extent: Extent) -> Option<Heat> {
        self.policy.as_ref().map(|policy| policy.explain(extent))
    }

    /// [`AccessStats::note_use`] will be called for this block shortly.
    #[inline]
    pub fn prefetch_use(&self, chunk: (u32, u32), block: usize) {
        if let Some(policy) = &self.policy {
            policy.prefetch(extent_of(chunk, block / EXTENT_BLOCKS));
        }
    }

    /// [`Shard::tell_placed`] will be called shortly, and [`AccessStats::prefetch_use`] was called before.
    #[inline]
    pub fn prefetch_entry(&self, chunk: (u32, u32), block: usize) {
        if let Some(policy) = &self.policy {
            policy.prefetch_entry(extent_of(chunk, block / EXTENT_BLOCKS));
        }
    }

    /// A host turns to other blocks; `saves`: they would not be in RAM without being predicted. What follows them is
    /// predicted, if it is not there yet.
    pub fn follow(&mut self, blocks: Blocks, saves: bool, is_there: impl Fn(Extent) -> bool) {
        if let Some(policy) = &mut self.policy {
            policy.follow_where(blocks, saves, is_there);
        }
    }

    /// Takes predicted extents that are worth a prefetch; false if there are none.
    pub fn take_predicted(&mut self, found: &mut Vec<Arrival>) -> bool {
        let policy = self.policy.as_mut();
        policy.is_some_and(|policy| policy.foreseen(None, found).is_some())
    }

    /// An extent is evicted from RAM; `soon`: these will be next, in this order.
    pub fn begin_leaving(&mut self, soon: [Option<Extent>; 2]) {
        let Some(policy) = &self.policy else {
            return;
        };
        if let Some(extent) = soon[1] {
            policy.prefetch(extent);
        }
        if let Some(extent) = soon[0] {
            policy.prefetch_entry(extent);
        }
        self.regions.tier_is_full(policy.is_nearly_full());
    }

    /// Whether an extent that has left RAM is worth a place on the fast tier.
    pub fn left_ram(&mut self, blocks: Blocks, touched: u16, reluctance: f32) -> Option<Admission> {
        let policy = self.policy.as_mut()?;
        Some(policy.left_ram(blocks, touched, reluctance))
    }

    /// An extent was promoted without a request by a host.
    pub(super) fn rose_unasked(&mut self, extent: Extent) {
        if let Some(policy) = &mut self.policy {
            policy.rose_unasked(extent);
        }
    }

    /// These extents of layers do not leave the fast tier.
    pub(super) fn hold(&mut self, held: impl FnOnce() -> Vec<(u32, Range<u64>)>) {
        if let Some(policy) = &mut self.policy {
            policy.hold(held());
        }
    }

    /// The (approximately) least valuable copy on the fast tier.
    pub(super) fn clean_victim(&mut self) -> Option<Victim> {
        self.policy.as_mut()?.clean_victim()
    }

    /// The same of these layers.
    pub(super) fn clean_victim_of(&mut self, is_one: impl Fn(u32) -> bool) -> Option<Victim> {
        self.policy.as_mut()?.clean_victim_of(is_one)
    }

    /// The same with a weight for each layer; `None`: its copies are kept.
    pub(super) fn clean_victim_by(
        &mut self,
        weight: impl Fn(u32) -> Option<f32>,
    ) -> Option<Victim> {
        self.policy.as_mut()?.clean_victim_by(weight)
    }
}

impl Shard {
    /// Starts the policy: a shard that is only inspected needs none.
    pub(crate) fn begin_policy(&self) {
        let config = self.policy_config(self.config.ram_bytes);
        let mut state = self.state.borrow_mut();
        state.access.begin(config);
        state.tell_held();
    }

    /// Parameters of the policy, with this amount of RAM.
    pub(super) fn policy_config(&self, ram_bytes: u64) -> Config {
        Config {
            fast_blocks: self.fast_share(),
            ram_blocks: ram_bytes / BLOCK as u64,
            margin: MARGIN,
            seed: u64::from(self.config.shard.0),
        }
    }

    /// Reports to the policy which blocks of these extents of a chunk are on the fast tier.
    pub(crate) fn tell_placed(
        &self,
        state: &mut State,
        chunk: (u32, u32),
        map_page: &MapPage,
        extents: u16,
    ) {
        let page = map_page.page.borrow();
        state.access.note_placed(chunk, extents, |at| {
            let (slots, homes) = (page.slots_of(at), page.homes_of(at));
            // What has a slot on the slow tier is not at home as well.
            let is_slow = |block: &usize| {
                let place = page.slot(at * EXTENT_BLOCKS + block);
                place.is_some() && self.class(place) == Class::Slow
            };
            let dirty = slots & !homes;
            let slow = (0..EXTENT_BLOCKS).filter(|block| dirty >> block & 1 == 1);
            let slow = slow
                .filter(is_slow)
                .fold(0, |mask, block| mask | 1 << block);
            (slots & !slow, dirty & !slow)
        });
    }

    /// Copies that extents of a chunk have on the fast tier.
    pub(crate) fn clean_copies(map_page: &MapPage, extents: u16) -> BlockMask {
        let page = map_page.page.borrow();
        let clean_copies = page.home_mask().and(page.slot_mask());
        let wanted = |block: &usize| extents >> (block / EXTENT_BLOCKS) & 1 == 1;
        clean_copies.blocks().filter(wanted).collect()
    }

    /// Extents of a chunk that no host has used since the pool was opened, as far as known.
    pub(super) fn unused(&self, chunk: (u32, u32)) -> u16 {
        self.state.borrow().access.unused(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> AccessStats {
        let mut stats = AccessStats::new();
        stats.begin(Config {
            fast_blocks: 1 << 16,
            ram_blocks: 1 << 10,
            margin: MARGIN,
            seed: 1,
        });
        stats
    }

    #[test]
    fn nothing_is_learned_before_the_shard_serves() {
        let mut stats = AccessStats::new();
        stats.note_use_of(By::read(1), (1, 0), 5);
        assert_eq!((stats.unused((1, 0)), stats.are_begun()), (u16::MAX, false));
        assert!(stats.explain(extent_of((1, 0), 0)).is_none());
        assert!(stats.clean_victim().is_none());
    }

    #[test]
    fn uses_of_a_bypassed_initiator_leave_no_trace() {
        let mut stats = stats();
        stats.note_use_of(By::read(1).bypassed(true), (1, 0), 5);
        assert_eq!(stats.unused((1, 0)), u16::MAX);
        stats.note_use_of(By::read(1), (1, 0), 5);
        assert_eq!(stats.unused((1, 0)), u16::MAX - 1);
        let blocks: BlockMask = [5].into_iter().collect();
        assert_eq!(stats.most_uses((1, 0), &blocks), 1);
        stats.forget_layer(1);
        assert_eq!(stats.unused((1, 0)), u16::MAX);
    }

    #[test]
    fn what_is_forgotten_as_placed_is_no_victim() {
        let mut stats = stats();
        stats.note_placed((1, 0), 1, |_| (u16::MAX, 0));
        let victim = stats.clean_victim().map(|victim| victim.extent);
        assert_eq!(victim, Some(extent_of((1, 0), 0)));
        stats.forget_placed((1, 0));
        assert!(stats.clean_victim().is_none());
    }
}
