//! Layers: which one takes a volume's writes, and whose page has a block (docs/snapshots.md).

use super::page::{Found, Make, MapPage, live};
use super::radix::Lookup;
use crate::shard::state::{Shard, State, Volume};
use block::IoError;
use format::{BlockCounts, BlockMask, ChunkPage, LayerConfig, PagePtr};
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;
use units::Place;
use units::mutation::{Mutation, is_on};

/// Chunks that are found together.
const CHUNKS: usize = 64;

/// A page that has to be loaded first: layer, level, first key, and where it lies.
pub(crate) type Missing = (u32, u8, u32, PagePtr);

/// Pages that are needed and not in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// The pages.
    All,
    /// Summaries will do.
    OrSummaries,
}

/// Blocks of a chunk, by the page that has them.
#[derive(Default)]
pub(crate) struct Owned {
    /// Layer, page and blocks; what the page says counts for these.
    pub parts: SmallVec<[(u32, Rc<MapPage>, BlockMask); 2]>,
    /// Blocks that no page covers.
    pub zero: BlockMask,
    /// Blocks that were not followed further down.
    pub beneath: BlockMask,
    /// Blocks whose pages are not in memory, by what their summaries say.
    pub placed: AllPlaced,
}

/// Blocks of which summaries say where they lie: mostly a read has one.
pub(crate) type AllPlaced = SmallVec<[Placed; 1]>;

/// A block of which a summary says where it lies.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    /// The layer whose page has it.
    pub layer: u32,
    /// Its number in the chunk.
    pub block: usize,
    pub slot: Place,
    pub crc: u32,
}

/// Whether volumes can be switched to new layers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ready {
    /// They are quiesced.
    Quiesced,
    /// There is no room for the pages of another snapshot.
    Full,
    /// The new layers of these volumes take writes already.
    SwitchedAlready(Vec<u32>),
}

impl Owned {
    /// The blocks that are not zeroes.
    pub fn stored(&self) -> BlockMask {
        let mut stored = BlockMask::default();
        for (_, map_page, blocks) in &self.parts {
            let page = map_page.page.borrow();
            stored = stored.or(page.slot_mask().or(page.home_mask()).and(*blocks));
        }
        stored
    }
}

impl State {
    /// The layer that takes a volume's writes.
    #[inline]
    pub fn live(&self, volume: u32) -> u32 {
        self.active.of(volume)
    }

    /// The page for a chunk of a layer: its own, or that of the nearest layer beneath.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn view(&self, layer: u32, chunk: u32) -> Result<Option<(u32, Rc<MapPage>)>, Missing> {
        self.view_above(layer, chunk, 0)
    }

    /// The page that a layer itself has of a chunk.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn page_of(&self, layer: u32, chunk: u32) -> Result<Option<&Rc<MapPage>>, Missing> {
        match self.volumes.get(&layer) {
            Some(entry) => page_of(entry, layer, chunk),
            None => Ok(None),
        }
    }

    /// The same as [`State::view`], of a page that a layer above epoch `floor` has.
    fn view_above(
        &self,
        layer: u32,
        chunk: u32,
        floor: u32,
    ) -> Result<Option<(u32, Rc<MapPage>)>, Missing> {
        let mut layer = layer;
        while let Some(entry) = self.volumes.get(&layer)
            && entry.epoch > floor
        {
            if let Some(map_page) = page_of(entry, layer, chunk)? {
                return Ok(Some((layer, map_page.clone())));
            }
            layer = entry.parent;
        }
        Ok(None)
    }

    /// Whose pages have these blocks of a chunk, seen from a layer.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn owned(&self, layer: u32, chunk: u32, blocks: BlockMask) -> Result<Owned, Missing> {
        self.owned_above(layer, chunk, blocks, 0, Pages::All)
    }

    /// The same for a read, to which a place is enough where there is a summary.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn places(&self, layer: u32, chunk: u32, blocks: BlockMask) -> Result<Owned, Missing> {
        self.owned_above(layer, chunk, blocks, 0, Pages::OrSummaries)
    }

    /// The same, for hosts' reads: most volumes have no layers beneath, and one page has it all.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn sources(&self, layer: u32, chunk: u32, blocks: BlockMask) -> Result<Owned, Missing> {
        match self.volumes.get(&layer) {
            Some(entry) if entry.parent == 0 => Ok(match page_of(entry, layer, chunk)? {
                Some(map_page) => Owned {
                    parts: smallvec![(layer, map_page.clone(), blocks)],
                    ..Owned::default()
                },
                None => Owned {
                    zero: blocks,
                    ..Owned::default()
                },
            }),
            _ => self.places(layer, chunk, blocks),
        }
    }

    /// The same, of blocks that layers above epoch `floor` have; the others are `beneath`. With a floor
    /// other than 0, a layer on the way down has to have that epoch.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn owned_above(
        &self,
        layer: u32,
        chunk: u32,
        blocks: BlockMask,
        floor: u32,
        pages: Pages,
    ) -> Result<Owned, Missing> {
        let mut owned = Owned::default();
        let top = layer;
        // Mostly one layer at a time has all: no allocation then.
        let mut todo: SmallVec<[(u32, BlockMask); 4]> = smallvec![(layer, blocks)];
        while let Some((layer, mut blocks)) = todo.pop() {
            // Pages of inherited blocks are mostly evicted: a summary is found sooner.
            if pages == Pages::OrSummaries && layer != top {
                blocks = self.without_placed((layer, chunk), blocks, &mut owned.placed);
                if blocks.is_empty() {
                    continue;
                }
            }
            let view = self.view_above(layer, chunk, floor);
            if let (Err(missing), Pages::OrSummaries) = (&view, pages) {
                let key = (missing.0, chunk);
                blocks = self.without_placed(key, blocks, &mut owned.placed);
                if blocks.is_empty() {
                    continue;
                }
            }
            let Some((found, map_page)) = view? else {
                let none = match floor {
                    0 => &mut owned.zero,
                    _ => &mut owned.beneath,
                };
                *none = none.or(blocks);
                continue;
            };
            let inherited = match self.volumes.get(&found) {
                Some(entry) if entry.parent != 0 => map_page.page.borrow().inherited_of(blocks),
                _ => BlockMask::default(),
            };
            let mut left = inherited;
            while let Some(first) = left.blocks().next() {
                let epoch = map_page.page.borrow().from(first);
                let page = map_page.page.borrow();
                let same: BlockMask = left
                    .blocks()
                    .filter(|block| page.from(*block) == epoch)
                    .collect();
                left = left.and_not(same);
                match self.paths.owner(&self.volumes, (layer, found), epoch) {
                    Some(owner) => todo.push((owner, same)),
                    // No layer beneath covers it any longer: what is here counts.
                    None => owned.zero = owned.zero.or(same),
                }
            }
            let own = blocks.and_not(inherited);
            if !own.is_empty() {
                owned.parts.push((found, map_page, own));
            }
        }
        Ok(owned)
    }

    /// Takes off the blocks of which a layer's summary says where they lie.
    fn without_placed(
        &self,
        key: (u32, u32),
        blocks: BlockMask,
        placed: &mut AllPlaced,
    ) -> BlockMask {
        let mut left = blocks;
        for block in blocks.blocks() {
            self.access.prefetch_use(key, block);
            let Some((slot, crc)) = self.page_cache.summary(key, block) else {
                continue;
            };
            left.clear(block);
            placed.push(Placed {
                layer: key.0,
                block,
                slot,
                crc,
            });
        }
        left
    }

    /// The page that a new one of `layer` begins with, where that is based on others.
    ///
    /// # Errors
    /// The page that has to be loaded first.
    pub fn forked(&self, layer: u32, chunk: u32) -> Result<Option<ChunkPage>, Missing> {
        let parent = self.volumes.get(&layer).map_or(0, |entry| entry.parent);
        if parent == 0 {
            return Ok(None);
        }
        let found = self.view(parent, chunk)?;
        Ok(found.map(|(below, map_page)| {
            let epoch = self.volumes[&below].epoch;
            map_page.page.borrow().fork(layer, chunk, epoch)
        }))
    }
}

impl Shard {
    /// Adds a volume whose writes the layer `live` takes.
    pub fn set_volume(&self, id: u32, live: u32) {
        let mut state = self.state.borrow_mut();
        if live != id {
            state.active.switch(id, live);
        }
        layer_entry(&mut state, live);
    }

    /// Says which layers there are and what they stand on. An opening does before the journal is
    /// replayed: what is inherited depends on it.
    pub fn set_layers(&self, layers: &[LayerConfig]) {
        let mut state = self.state.borrow_mut();
        state.paths.forget();
        for layer in layers {
            let entry = layer_entry(&mut state, layer.id);
            (entry.parent, entry.epoch) = (layer.parent, layer.epoch);
            if layer.parent != 0 {
                layer_entry(&mut state, layer.parent).stood_on = true;
            }
        }
    }

    /// Whose pages have these blocks of a volume's chunk, loaded when they have to be.
    ///
    /// # Errors
    /// `Gone` when the volume is, or the drive's error.
    pub(crate) async fn owned(
        &self,
        volume: u32,
        chunk: u32,
        blocks: BlockMask,
    ) -> Result<Owned, IoError> {
        self.look(|state| {
            let layer = state.live(volume);
            live(state.volumes.get(&layer))?;
            Ok(state.owned(layer, chunk, blocks))
        })
        .await
    }

    /// The result of `find` once no page is missing for it: missing ones are loaded, and the state is
    /// examined again.
    ///
    /// # Errors
    /// The error of `find`, or the drive's.
    pub(crate) async fn look<T>(
        &self,
        find: impl Fn(&State) -> Result<Result<T, Missing>, IoError>,
    ) -> Result<T, IoError> {
        loop {
            let found = find(&self.state.borrow())?;
            match found {
                Ok(found) => return Ok(found),
                Err((layer, level, key, ptr)) => self.load(layer, level, key, ptr).await?,
            }
        }
    }

    /// The first chunk from `from` on of which a volume's layer, or one beneath, has a page; `None` when no further one has.
    ///
    /// # Errors
    /// The drive's error.
    pub(crate) async fn next_mapped(&self, volume: u32, from: u32) -> Result<Option<u32>, IoError> {
        let mut layer = self.state.borrow().live(volume);
        let mut first: Option<u32> = None;
        while layer != 0 && first != Some(from) {
            let found = self.some_chunks(layer, from, 1).await?;
            first = first.into_iter().chain(found).min();
            let state = self.state.borrow();
            layer = state.volumes.get(&layer).map_or(0, |entry| entry.parent);
        }
        Ok(first)
    }

    /// The next chunks from `from` on that a layer has pages of, loading nodes until there are any;
    /// none at its end.
    ///
    /// # Errors
    /// The drive's error.
    pub(crate) async fn next_chunks(&self, layer: u32, from: u32) -> Result<Vec<u32>, IoError> {
        self.some_chunks(layer, from, CHUNKS).await
    }

    async fn some_chunks(&self, layer: u32, from: u32, limit: usize) -> Result<Vec<u32>, IoError> {
        loop {
            let (keys, need) = {
                let state = self.state.borrow();
                let Some(entry) = state.volumes.get(&layer) else {
                    return Ok(Vec::new());
                };
                entry.tree.scan(from, limit)
            };
            match need {
                Some((level, key, ptr)) if keys.is_empty() => {
                    self.load(layer, level, key, ptr).await?;
                }
                _ => return Ok(keys),
            }
        }
    }

    /// The layer and page that take a write to a chunk of a volume now, made when there is none
    /// and `create`. It is so until the caller waits for something.
    ///
    /// # Errors
    /// As [`Shard::map_page`]'s.
    pub(crate) async fn live_page(
        &self,
        volume: u32,
        chunk: u32,
        create: bool,
    ) -> Result<Option<(u32, Rc<MapPage>)>, IoError> {
        loop {
            let resumed = {
                let state = self.state.borrow();
                let is_quiesced = state.active.is_quiesced(volume);
                is_quiesced.then(|| state.active.until_resumed())
            };
            if let Some(resumed) = resumed {
                self.check()?;
                resumed.await;
                continue;
            }
            let layer = {
                let state = self.state.borrow();
                writer(&state, state.live(volume), chunk)
            };
            match layer {
                Err((layer, level, key, ptr)) => self.load(layer, level, key, ptr).await?,
                Ok(layer) => match self.find_page(layer, chunk, Make::more(create))? {
                    Found::MapPage(map_page) => {
                        return Ok(map_page.map(|map_page| (layer, map_page)));
                    }
                    other => self.make_findable(other).await?,
                },
            }
        }
    }

    /// Those of these volumes whose active layers are the given ones.
    pub fn are_live(&self, volumes: &[(u32, u32)]) -> Vec<u32> {
        let state = self.state.borrow();
        let live = volumes
            .iter()
            .filter(|known| state.live(known.0) == known.1);
        live.map(|known| known.0).collect()
    }

    /// Readies volumes for new layers, both of which are given: learns of `layers`, and quiesces the volumes.
    pub fn quiesce_if_ready(&self, layers: &[LayerConfig], switches: &[(u32, u32)]) -> Ready {
        if !self.has_room_for_snapshot() {
            return Ready::Full;
        }
        let ahead = self.are_live(switches);
        if !ahead.is_empty() {
            return Ready::SwitchedAlready(ahead);
        }
        self.set_layers(layers);
        if !is_on(Mutation::SnapshotUnheld) {
            let volumes: Vec<u32> = switches.iter().map(|(volume, _)| *volume).collect();
            self.quiesce_volumes(&volumes);
        }
        Ready::Quiesced
    }

    /// Pages of these volumes do not change from now on, until they are resumed.
    pub fn quiesce_volumes(&self, volumes: &[u32]) {
        self.state.borrow_mut().active.quiesce(volumes);
    }

    /// Switches these volumes' writes to the layers beside them, and resumes the volumes.
    pub fn switch_layers(&self, volumes: &[(u32, u32)]) {
        let mut state = self.state.borrow_mut();
        for (volume, layer) in volumes {
            let before = state.live(*volume);
            let old = layer_entry(&mut state, before);
            let (counters, allowance) = (old.counters, old.allowance.clone());
            let spread = old.spread.take();
            let new = layer_entry(&mut state, *layer);
            (new.counters, new.spread) = (counters, spread);
            new.count_for(allowance, &self.shared.space);
            state.active.switch(*volume, *layer);
            state.pass_settings(before, *layer);
        }
        drop(state);
        self.resume_volumes(volumes.iter().map(|(volume, _)| *volume));
    }

    /// The number under which a snapshot's layer is read; no layer: it is not any longer.
    pub fn set_reader(&self, id: u32, layer: Option<u32>) {
        let active = &mut self.state.borrow_mut().active;
        match layer {
            Some(layer) => active.switch(id, layer),
            None => active.forget(id),
        }
    }

    /// Resumes volumes as they are.
    pub fn resume_volumes(&self, volumes: impl Iterator<Item = u32>) {
        self.state.borrow_mut().active.resume(volumes);
    }
}

/// A layer; without any content when it is not there yet.
pub(super) fn layer_entry(state: &mut State, id: u32) -> &mut Volume {
    let State {
        volumes,
        dirty_pages,
        ..
    } = state;
    let made = || {
        Volume::new(
            id,
            PagePtr::default(),
            BlockCounts::default(),
            dirty_pages.nodes(),
        )
    };
    volumes.entry(id).or_insert_with(made)
}

fn page_of(entry: &Volume, layer: u32, chunk: u32) -> Result<Option<&Rc<MapPage>>, Missing> {
    match entry.tree.lookup(chunk) {
        Lookup::Loaded(map_page) if !map_page.freed.get() => Ok(Some(map_page)),
        Lookup::Loaded(_) | Lookup::Absent => Ok(None),
        Lookup::OnDisk(ptr) => Err((layer, 0, chunk, ptr)),
        Lookup::NeedNode(level, key, ptr) => Err((layer, level, key, ptr)),
    }
}

/// The layer whose page of a chunk takes writes that are meant for `layer`: while that is being
/// merged and has none any longer, the one beneath.
pub(crate) fn writer(state: &State, layer: u32, chunk: u32) -> Result<u32, Missing> {
    let Some(entry) = state.volumes.get(&layer).filter(|entry| entry.merging) else {
        return Ok(layer);
    };
    match page_of(entry, layer, chunk)? {
        Some(_) => Ok(layer),
        None => Ok(entry.parent),
    }
}
