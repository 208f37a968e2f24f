//! Chunks' pages in memory.

use super::layer_table::Missing;
use super::radix::Lookup;
use crate::checkpoint::metadata_pages::chunk_page;
use crate::shard::state::{Shard, State, Volume};
use crate::space::Class;
use block::{ErrorKind, IoError};
use format::{BlockCounts, BlockState, ChunkPage, Page, PagePtr};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::CHUNK_EXTENTS;
use units::mutation::{Mutation, is_on};

/// Timeout of a new page's wait for work with reserved room, in nanoseconds, and its polling interval.
const ROOM_NS: u64 = 5_000_000_000;
const LOOK_NS: u64 = 10_000_000;

/// The page of a chunk in memory. It stays there while it is referenced.
pub struct MapPage {
    pub page: RefCell<ChunkPage>,
    /// Differs from what is on the drive.
    pub dirty: Cell<bool>,
    /// Looked at since the eviction hand last passed.
    pub touched: Cell<bool>,
    /// It went into the page of the layer beneath, or its layer is no more: it counts as absent.
    pub freed: Cell<bool>,
    /// Background work is moving the chunk's data.
    pub busy: Cell<bool>,
    /// Extents that are being fetched from the slow tier.
    pub fetching: Cell<u16>,
    /// Slot of the RAM cache of each extent, plus one.
    pub ram: [Cell<u32>; CHUNK_EXTENTS],
    /// When a block was last written, on the loop's clock.
    pub written_ns: Cell<u64>,
    /// The content of the page on the drive.
    pub disk_counts: Cell<BlockCounts>,
}

impl MapPage {
    pub(crate) fn new(page: ChunkPage, disk_counts: BlockCounts) -> Rc<Self> {
        Rc::new(Self {
            page: RefCell::new(page),
            dirty: Cell::new(false),
            touched: Cell::new(true),
            freed: Cell::new(false),
            busy: Cell::new(false),
            fetching: Cell::new(0),
            ram: Default::default(),
            written_ns: Cell::new(0),
            disk_counts: Cell::new(disk_counts),
        })
    }

    pub fn ram_extents(&self) -> usize {
        self.ram.iter().filter(|slot| slot.get() != 0).count()
    }
}

/// Result of looking up a chunk's page.
pub(crate) enum Found {
    /// It is in memory, or there is none.
    MapPage(Option<Rc<MapPage>>),
    /// A page has to be loaded first.
    OnDisk(Missing),
    /// It would have to be made and the metadata region has no room.
    NoRoom,
}

/// Whether a page that is not there is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    /// It is not.
    Not,
    /// Where the metadata region has room for one more.
    WithRoom,
    /// In any case: another goes for it.
    InExchange,
}

impl Make {
    /// For who makes none, or one more.
    pub fn more(create: bool) -> Self {
        match create {
            true => Self::WithRoom,
            false => Self::Not,
        }
    }
}

/// Work on a chunk's data in the background: one at a time.
pub struct ChunkLock(Rc<MapPage>);

impl ChunkLock {
    /// Takes the chunk, unless some other work has it.
    pub fn try_new(map_page: &Rc<MapPage>) -> Option<Self> {
        (!map_page.busy.replace(true) || is_on(Mutation::BusyShared))
            .then(|| Self(map_page.clone()))
    }
}

impl Drop for ChunkLock {
    fn drop(&mut self) {
        self.0.busy.set(false);
    }
}

impl Shard {
    /// The page of a chunk, loaded when it has to be; made when there is none and `create`.
    ///
    /// # Errors
    /// `Gone` when the volume is, `NoSpace` when the metadata region has no room for a new page,
    /// or the drive's error.
    pub(crate) async fn map_page(
        &self,
        volume: u32,
        chunk: u32,
        create: bool,
    ) -> Result<Option<Rc<MapPage>>, IoError> {
        self.page_or(volume, chunk, Make::more(create)).await
    }

    /// As [`Shard::map_page`], made as `make` says.
    ///
    /// # Errors
    /// As [`Shard::map_page`]'s.
    pub(super) async fn page_or(
        &self,
        volume: u32,
        chunk: u32,
        make: Make,
    ) -> Result<Option<Rc<MapPage>>, IoError> {
        loop {
            match self.find_page(volume, chunk, make)? {
                Found::MapPage(map_page) => return Ok(map_page),
                other => self.make_findable(other).await?,
            }
        }
    }

    /// Does what stands between looking for a page and finding it.
    ///
    /// # Errors
    /// As [`Shard::map_page`]'s.
    pub(super) async fn make_findable(&self, found: Found) -> Result<(), IoError> {
        match found {
            Found::MapPage(_) => Ok(()),
            Found::OnDisk((layer, level, key, ptr)) => self.load(layer, level, key, ptr).await,
            // What waits to be written takes room twice until it is.
            Found::NoRoom => {
                for _ in 0..2 {
                    if !self.checkpoint_gives_room() {
                        break;
                    }
                    self.checkpoint().await?;
                    self.barrier().await?;
                    if self.has_room_for_pages(&self.state.borrow()) {
                        return Ok(());
                    }
                }
                // Work in progress returns unused space when it ends.
                let until = self.handle.now_ns() + ROOM_NS;
                while self.has_room_alone() && self.handle.now_ns() < until {
                    self.check()?;
                    futures_util::future::select(
                        self.reservations.until_freed(),
                        self.handle.sleep(LOOK_NS),
                    )
                    .await;
                    if self.has_room_for_pages(&self.state.borrow()) {
                        return Ok(());
                    }
                }
                let advice = "the metadata region is full: delete snapshots, clones or volumes, or discard data";
                Err(IoError::new(ErrorKind::NoSpace, advice))
            }
        }
    }

    /// Whether pages wait for a checkpoint, or space that one freed waits for its release.
    pub(crate) fn checkpoint_gives_room(&self) -> bool {
        let state = self.state.borrow();
        let changed = state.dirty_pages.unplaced() + state.dirty_pages.nodes().count();
        changed > 0
            || state
                .deferred_frees
                .batches()
                .any(|batch| !batch.slots.is_empty())
    }

    /// Looks for the page of a chunk of a layer; where there is none it is made as `make` says.
    ///
    /// # Errors
    /// `Gone` when the layer is.
    pub(super) fn find_page(&self, volume: u32, chunk: u32, make: Make) -> Result<Found, IoError> {
        let mut state = self.state.borrow_mut();
        let entry = live(state.volumes.get(&volume))?;
        match entry.tree.lookup(chunk) {
            Lookup::Loaded(map_page) if !map_page.freed.get() => {
                return Ok(Found::MapPage(Some(map_page.clone())));
            }
            Lookup::OnDisk(ptr) => return Ok(Found::OnDisk((volume, 0, chunk, ptr))),
            Lookup::NeedNode(level, key, ptr) => {
                return Ok(Found::OnDisk((volume, level, key, ptr)));
            }
            Lookup::Loaded(_) | Lookup::Absent => match make {
                Make::Not => return Ok(Found::MapPage(None)),
                Make::WithRoom if !self.has_room_for_pages(&state) => return Ok(Found::NoRoom),
                Make::WithRoom | Make::InExchange => {}
            },
        }
        let page = match state.forked(volume, chunk) {
            Ok(page) => page.unwrap_or_else(|| ChunkPage::new(volume, chunk)),
            Err(missing) => return Ok(Found::OnDisk(missing)),
        };
        let map_page = MapPage::new(page, BlockCounts::default());
        if let Some(entry) = state.volumes.get_mut(&volume) {
            entry.tree.set_leaf(chunk, map_page.clone());
        }
        state.page_cache.made((volume, chunk));
        Ok(Found::MapPage(Some(map_page)))
    }

    /// Loads one page of a volume's tree; concurrent callers load it once.
    pub(crate) async fn load(
        &self,
        volume: u32,
        level: u8,
        key: u32,
        ptr: PagePtr,
    ) -> Result<(), IoError> {
        let other = {
            let mut state = self.state.borrow_mut();
            state.page_cache.begin_load((volume, level, key))
        };
        if let Some(other) = other {
            other.await;
            return self.check();
        }
        let header = {
            let state = self.state.borrow();
            match state.volumes.get(&volume) {
                Some(_) if level == 0 => ChunkPage::header(volume, key, 0),
                Some(entry) => entry.tree.header(level, key),
                None => ChunkPage::header(volume, key, 0),
            }
        };
        let page = self.read_page(ptr, header).await;
        let mut state = self.state.borrow_mut();
        state.page_cache.end_load((volume, level, key));
        self.install_page(&mut state, (volume, level, key, ptr), page?)
    }

    /// Takes a page of a volume's tree that was read from where `ptr` says; ignored when another
    /// is there by now.
    ///
    /// # Errors
    /// `Medium` when it says that data is where the pool has no space.
    pub(super) fn install_page(
        &self,
        state: &mut State,
        (volume, level, key, ptr): (u32, u8, u32, PagePtr),
        page: Page,
    ) -> Result<(), IoError> {
        let Some(entry) = state.volumes.get_mut(&volume) else {
            return Ok(());
        };
        if level > 0 {
            entry.tree.install(level, key, page);
            return Ok(());
        }
        if entry.tree.ptr(key) != Some(ptr) || !matches!(entry.tree.lookup(key), Lookup::OnDisk(_))
        {
            return Ok(());
        }
        let page = chunk_page(&state.alloc, page)?;
        let counts = self.count(&page);
        let map_page = MapPage::new(page, counts);
        entry.tree.set_leaf(key, map_page.clone());
        state.page_cache.loaded((volume, key));
        let (dirty, clean) = (counts.fast > 0, counts.clean > 0);
        state.tier_index.found((volume, key), dirty, clean);
        if counts.fast + counts.clean > 0 {
            self.tell_placed(state, (volume, key), &map_page, u16::MAX);
        }
        Ok(())
    }

    /// A page's blocks, by tier.
    pub(crate) fn count(&self, page: &ChunkPage) -> BlockCounts {
        let (slots, home) = (page.slot_mask(), page.home_mask());
        let dirty = slots.and_not(home);
        let fast = |block: &usize| self.class(page.slot(*block)) == Class::Fast;
        let fast = dirty.blocks().filter(fast).count() as u64;
        BlockCounts {
            home: home.and_not(slots).count() as u64,
            fast,
            clean: home.and(slots).count() as u64,
            slow: dirty.count() as u64 - fast,
        }
    }

    /// The count that a block belongs to; none when it is zeroes.
    pub(super) fn counter<'a>(
        &self,
        page: &ChunkPage,
        block: usize,
        counts: &'a mut BlockCounts,
    ) -> Option<&'a mut u64> {
        match page.state(block) {
            BlockState::Zero => None,
            BlockState::Home => Some(&mut counts.home),
            BlockState::Clean => Some(&mut counts.clean),
            BlockState::Dirty if self.class(page.slot(block)) == Class::Fast => {
                Some(&mut counts.fast)
            }
            BlockState::Dirty => Some(&mut counts.slow),
        }
    }
}

/// The volume, unless it has ended.
pub(crate) fn live(volume: Option<&Volume>) -> Result<&Volume, IoError> {
    volume
        .filter(|volume| !volume.gone)
        .ok_or_else(|| IoError::new(ErrorKind::Gone, "it was deleted"))
}
