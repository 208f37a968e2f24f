//! What the policy is told: which blocks hosts use, and what of each extent is on the fast tier.

use crate::map::layer_table::Placed;
use crate::map::page::MapPage;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use format::BlockMask;
use placement::{Blocks, Config, Extent, Policy, Regions};
use qos::Due;
use units::{BLOCK, CHUNK_EXTENTS, EXTENT_BLOCKS};

/// How many times as much as what it displaces something has to be worth to be promoted.
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
    /// The volume bypasses its initiator: it is served, and placement does not hear of it.
    pub bypassed: bool,
    /// By its volume's policy. What waits for nothing does not ask.
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

    /// The same with what the operation is due.
    pub fn due(self, due: Due) -> Self {
        Self { due, ..self }
    }

    /// The same of an initiator that may be bypassed.
    pub fn bypassed(self, bypassed: bool) -> Self {
        Self { bypassed, ..self }
    }
}

impl State {
    /// A layer is no more.
    pub(crate) fn forget_heat(&mut self, layer: u32) {
        self.regions.forget(layer);
        if let Some(policy) = &mut self.policy {
            policy.forget(layer);
        }
        self.forecast.forget(layer);
    }

    /// A chunk has nothing on the fast tier.
    pub(super) fn forget_placed(&mut self, chunk: (u32, u32)) {
        if let Some(policy) = &mut self.policy {
            (0..CHUNK_EXTENTS).for_each(|at| policy.placed(extent_of(chunk, at), 0, 0));
        }
    }

    /// A volume's host reads (or, `write`, writes) blocks of a layer's chunk.
    pub(crate) fn note_use(&mut self, by: By, chunk: (u32, u32), blocks: &BlockMask) {
        self.note_uses(by, chunk, blocks.blocks());
    }

    /// The same of one block.
    #[inline]
    pub(crate) fn note_use_of(&mut self, by: By, chunk: (u32, u32), block: usize) {
        self.note_uses(by, chunk, std::iter::once(block));
    }

    #[inline]
    fn note_uses(
        &mut self,
        by: By,
        chunk: (u32, u32),
        blocks: impl Iterator<Item = usize> + Clone,
    ) {
        if by.bypassed {
            return;
        }
        self.forecast
            .used(by.volume, chunk, blocks.clone(), by.write);
        let Some(policy) = &mut self.policy else {
            return;
        };
        self.regions.seen();
        let mut blocks = blocks.peekable();
        while let Some(first) = blocks.next() {
            let at = first / EXTENT_BLOCKS;
            let mut mask = 1 << (first % EXTENT_BLOCKS);
            while let Some(block) = blocks.next_if(|block| block / EXTENT_BLOCKS == at) {
                mask |= 1 << (block % EXTENT_BLOCKS);
            }
            let extent = extent_of(chunk, at);
            policy.used_by_host(Blocks { extent, mask });
        }
        for _ in 0..policy.take_seeks_saved() {
            self.regions.saved();
        }
    }

    /// Uses of the extent of a chunk that hosts used most, of those that have some of these blocks.
    pub(crate) fn most_uses(&self, chunk: (u32, u32), blocks: &BlockMask) -> u8 {
        let Some(policy) = &self.policy else {
            return 0;
        };
        let extents = (0..CHUNK_EXTENTS).filter(|at| in_extent(blocks, *at) != 0);
        let uses = extents.map(|at| policy.explain(extent_of(chunk, at)).uses);
        uses.max().unwrap_or(0)
    }

    /// [`State::note_use`] will be told of this block in a moment.
    #[inline]
    pub(crate) fn prefetch_use(&self, chunk: (u32, u32), block: usize) {
        if let Some(policy) = &self.policy {
            policy.prefetch(extent_of(chunk, block / EXTENT_BLOCKS));
        }
    }

    /// [`Shard::tell_placed`] will, and [`State::prefetch_use`] was called before.
    #[inline]
    pub(crate) fn prefetch_entry(&self, chunk: (u32, u32), block: usize) {
        if let Some(policy) = &self.policy {
            policy.prefetch_entry(extent_of(chunk, block / EXTENT_BLOCKS));
        }
    }

    /// [`State::note_use`] of blocks of which summaries say where they lie.
    pub(crate) fn note_placed(&mut self, by: By, chunk: u32, placed: &[Placed]) {
        for of_layer in placed.chunk_by(|one, next| one.layer == next.layer) {
            let blocks = of_layer.iter().map(|known| known.block).collect();
            self.note_use(by, (of_layer[0].layer, chunk), &blocks);
        }
    }
}

impl Shard {
    /// From now on the policy is told: a shard that is only looked at needs none.
    pub(crate) fn begin_policy(&self) {
        let config = self.policy_config(self.config.ram_bytes);
        let mut state = self.state.borrow_mut();
        state.regions = Regions::new(config.fast_blocks);
        state.policy = Some(Box::new(Policy::new(config)));
        state.tell_held();
    }

    /// What the policy is to go by, with so much RAM.
    pub(super) fn policy_config(&self, ram_bytes: u64) -> Config {
        Config {
            fast_blocks: self.fast_share(),
            ram_blocks: ram_bytes / BLOCK as u64,
            margin: MARGIN,
            seed: u64::from(self.config.shard.0),
        }
    }

    /// Tells the policy what of these extents of a chunk is on the fast tier.
    pub(crate) fn tell_placed(
        &self,
        state: &mut State,
        chunk: (u32, u32),
        map_page: &MapPage,
        extents: u16,
    ) {
        let Some(policy) = &mut state.policy else {
            return;
        };
        let page = map_page.page.borrow();
        for at in (0..CHUNK_EXTENTS).filter(|at| extents >> at & 1 == 1) {
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
            policy.placed(extent_of(chunk, at), slots & !slow, dirty & !slow);
        }
    }

    /// Copies that extents of a chunk have on the fast tier.
    pub(crate) fn clean_copies(map_page: &MapPage, extents: u16) -> BlockMask {
        let page = map_page.page.borrow();
        let clean_copies = page.home_mask().and(page.slot_mask());
        let wanted = |block: &usize| extents >> (block / EXTENT_BLOCKS) & 1 == 1;
        clean_copies.blocks().filter(wanted).collect()
    }

    /// Extents of a chunk that no host has used since the pool was opened, as far as is known.
    pub(super) fn unused(&self, chunk: (u32, u32)) -> u16 {
        let state = self.state.borrow();
        let Some(policy) = &state.policy else {
            return u16::MAX;
        };
        let unused = |at: &usize| policy.explain(extent_of(chunk, *at)).uses == 0;
        (0..CHUNK_EXTENTS)
            .filter(unused)
            .fold(0, |mask, at| mask | 1 << at)
    }
}
