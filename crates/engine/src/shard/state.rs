//! The state of a shard, made of its components.

use super::lifecycle::Lifecycle;
use super::qos::Entrance;
use super::stats::Stats;
use crate::cache::fills::Fills;
use crate::cache::read_cache::RamTier;
use crate::checkpoint::dirty_pages::DirtyPages;
use crate::checkpoint::marks::Marks;
use crate::checkpoint::root::CheckpointRoot;
use crate::checkpoint::turns::CheckpointTurns;
use crate::control::spread::Spreads;
use crate::control::types::{IoCounters, SpacePolicy};
use crate::io::write::admission::Pacing;
use crate::io::write::waiters::SpaceWaiters;
use crate::maintenance::rebalance::Asking;
use crate::maintenance::space_requests::SpaceRequests;
use crate::maintenance::upkeep::{HurtUntil, Upkeep};
use crate::map::active_layers::ActiveLayers;
use crate::map::layer_path::Paths;
use crate::map::page::MapPage;
use crate::map::page_cache::PageCache;
use crate::map::radix::{DirtyNodes, Tree};
use crate::recovery::open_checkpoint::OpenedFrom;
use crate::space::{
    Allocator, Allowance, Class, DeferredFrees, GroupTable, Run, SpaceShared, Tiers,
};
use crate::tiering::access_stats::AccessStats;
use crate::tiering::limits::Limits;
use crate::tiering::move_log::Ledger;
use crate::tiering::moves::Moves;
use crate::tiering::pin_promoter::PinPromoter;
use crate::tiering::promote::Promotions;
use crate::tiering::settings::VolumeSettings;
use crate::tiering::tier_index::TierIndex;
use crate::tiering::unreadable::UnreadableIndex;
use crate::tiering::write_budget::Budget;
use crate::vdrive::{Devices, Members, VdriveIo};
use crate::wal::journal::Journal;
use crate::wal::reservations::Reservations;
use crate::wal::writer::WalWriter;
use block::{ErrorKind, IoError};
use format::{BlockCounts, PagePtr};
use reactor::Handle;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::invariant::check;
use units::{Fetching, Place, PoolId, ShardId, VdriveId};

pub(crate) use format::{DIRECTORY, HOMES, SLOTS};

/// State that all shards of a pool share.
pub struct PoolShared {
    /// Free groups.
    pub groups: Arc<GroupTable>,
    /// Promised and stored blocks.
    pub space: SpaceShared,
    /// Promotion is held, into RAM and into the fast tier.
    pub promotion_held: AtomicBool,
    /// Bytes that each shard's RAM cache may hold; what it was started with where that is `u64::MAX`.
    pub ram_bytes: AtomicU64,
    /// Which members of mirrors count.
    pub members: Arc<Members>,
    /// The promotion budget, if there is one; shards also have it.
    pub budget: Mutex<Option<Arc<Budget>>>,
    /// Progress of their metadata.
    pub marks: Arc<Marks>,
    pub(crate) asking: Asking,
    /// Used by background work.
    pub(crate) hurt_until: Arc<HurtUntil>,
    policy: AtomicU8,
}

impl PoolShared {
    /// For a pool with this policy.
    pub fn new(groups: Arc<GroupTable>, policy: SpacePolicy, members: Arc<Members>) -> Self {
        Self {
            groups,
            space: SpaceShared::default(),
            promotion_held: AtomicBool::new(false),
            ram_bytes: AtomicU64::new(u64::MAX),
            members,
            budget: Mutex::default(),
            marks: Arc::default(),
            asking: Asking::default(),
            hurt_until: Arc::default(),
            policy: AtomicU8::new(policy as u8),
        }
    }

    /// Where new space begins.
    pub fn policy(&self) -> SpacePolicy {
        if self.policy.load(Ordering::Relaxed) == SpacePolicy::FastFirst as u8 {
            SpacePolicy::FastFirst
        } else {
            SpacePolicy::SlowFirst
        }
    }
}

/// Parameters for starting a shard.
#[derive(Clone, Copy, Debug)]
pub struct ShardConfig {
    /// Pool.
    pub pool: PoolId,
    /// Its number in the pool.
    pub shard: ShardId,
    /// Shards of the pool.
    pub shards: u16,
    /// Blocks of a group.
    pub group_blocks: u64,
    /// First block of its journal in the metadata region.
    pub journal_base: u64,
    /// Blocks of its journal.
    pub journal_blocks: u64,
    /// Bytes of its part of the RAM cache.
    pub ram_bytes: u64,
    /// Groups that it asks others for, as long as it finds fewer that are free.
    pub spare_groups: u64,
    /// Chunks' pages that it keeps in memory.
    pub map_pages: usize,
    /// Bytes of summaries of those that it abandoned.
    pub summaries: usize,
    /// Bytes of its log of moves.
    pub ledger: usize,
}

/// A layer of a volume (docs/snapshots.md), as far as it is in this shard. Most volumes have one, with
/// the volume's number.
pub(crate) struct Volume {
    pub tree: Tree<Rc<MapPage>>,
    /// The layer that this one is based on; 0: none.
    pub parent: u32,
    /// Other layers stand on it, or did.
    pub stood_on: bool,
    /// It covers the epochs above its parent's up to this one.
    pub epoch: u32,
    /// Its pages go into its parent's: where it has none, writes go there.
    pub merging: bool,
    /// Pages of the layer above came into this one's: it is not what its epoch says any longer.
    pub mixed: bool,
    /// The present map.
    pub counts: BlockCounts,
    /// The map on the drive.
    pub disk_counts: BlockCounts,
    /// Remaining space of its volume, if that has a quota or a reservation.
    pub allowance: Option<Arc<Allowance>>,
    /// Blocks of its own that the pool, and the allowance, know of.
    pub charged: i64,
    /// Placement settings of its volume, if any.
    pub settings: Option<Arc<VolumeSettings>>,
    /// No operation is admitted any longer.
    pub gone: bool,
    /// Its directory entry has to be written.
    pub dirty: bool,
    pub counters: IoCounters,
    /// Distribution of its hosts' operations; `None` before the first.
    pub spread: Option<Box<Spreads>>,
}

impl Volume {
    pub fn new(id: u32, root: PagePtr, counts: BlockCounts, dirty: &DirtyNodes) -> Self {
        Self {
            tree: Tree::new(id, root, dirty),
            parent: 0,
            stood_on: false,
            epoch: id,
            merging: false,
            mixed: false,
            counts,
            disk_counts: counts,
            allowance: None,
            charged: 0,
            settings: None,
            gone: false,
            dirty: false,
            counters: IoCounters::default(),
            spread: None,
        }
    }
}

/// The state of a shard, made of components that own their parts. All of it is borrowed at once, between awaits, so
/// that a change of several parts is one step; parts whose fields are disjoint are borrowed beside one another.
pub(crate) struct State {
    // The map: which layers there are, and where their blocks lie.
    /// Layers, by number.
    pub volumes: BTreeMap<u32, Volume>,
    pub active: ActiveLayers,
    pub paths: Paths,
    pub page_cache: PageCache,
    pub dirty_pages: DirtyPages,
    // What makes it durable.
    pub journal: Journal,
    pub root: CheckpointRoot,
    /// The checkpoint that an opening began with, until its recovery ends.
    pub opened_from: Option<OpenedFrom>,
    // Space.
    pub alloc: Allocator,
    pub deferred_frees: DeferredFrees,
    /// Write admission.
    pub pacing: Pacing,
    // The RAM cache and the tiers.
    pub ram: RamTier,
    pub access: AccessStats,
    pub tier_index: TierIndex,
    pub limits: Limits,
    /// Extents that have earned a place on the fast tier.
    pub promotions: Promotions,
    pub unreadable: UnreadableIndex,
    /// Log of recent moves.
    pub ledger: Ledger,
    /// Why the shard serves no more.
    pub failed: Option<IoError>,
    pub stats: Stats,
}

/// One single-threaded engine of a pool. All methods are for its own thread.
///
/// It is a composition root: each part owns its state and tells at its head what that is. Parts with data are in [`State`];
/// those here are turns, timers and events, which their tasks look at between awaits.
pub struct Shard {
    pub(crate) config: ShardConfig,
    pub(crate) handle: Handle,
    pub(crate) shared: Arc<PoolShared>,
    pub(crate) state: RefCell<State>,
    this: Weak<Self>,
    /// Where operations enter.
    pub(super) entrance: Entrance,
    pub(crate) lifecycle: Lifecycle,
    /// Background work.
    pub(crate) upkeep: Upkeep,
    pub(crate) devices: Devices,
    pub(crate) tiers: Tiers,
    pub(crate) wal: WalWriter,
    pub(crate) reservations: Reservations,
    pub(crate) checkpoints: CheckpointTurns,
    pub(crate) fills: Fills,
    pub(crate) moves: Moves,
    pub(crate) pin_promoter: PinPromoter,
    pub(crate) space_waiters: SpaceWaiters,
    pub(crate) requests: SpaceRequests,
    /// Blocks that its opening found lost.
    pub(crate) opening_lost: Cell<u64>,
    /// Slots of the write that is being made, kept between writes for its memory.
    pub(crate) scratch: RefCell<Vec<Run>>,
    /// The block that is used next, where it is in memory.
    pub(crate) fetching: Fetching,
}

impl Shard {
    /// A shard that has loaded nothing yet.
    pub fn new(
        config: ShardConfig,
        handle: Handle,
        shared: Arc<PoolShared>,
        vdrives: BTreeMap<VdriveId, Rc<VdriveIo>>,
    ) -> Rc<Self> {
        let alloc = Allocator::new(
            shared.groups.clone(),
            config.group_blocks,
            config.shards.into(),
        );
        let journal = Journal::new(
            (config.pool, config.shard),
            (config.journal_base, config.journal_blocks),
            handle.dma().clone(),
        );
        let state = State {
            volumes: BTreeMap::new(),
            active: ActiveLayers::default(),
            alloc,
            deferred_frees: DeferredFrees::default(),
            journal,
            root: CheckpointRoot::none(),
            opened_from: None,
            page_cache: PageCache::new(config.summaries),
            paths: Paths::default(),
            dirty_pages: DirtyPages::default(),
            ram: RamTier::new(config.ram_bytes),
            access: AccessStats::new(),
            ledger: Ledger::new(config.ledger, handle.now_ns()),
            tier_index: TierIndex::default(),
            limits: Limits::default(),
            unreadable: UnreadableIndex::default(),
            pacing: Pacing::default(),
            promotions: Promotions::default(),
            failed: None,
            stats: Stats::default(),
        };
        let tiers = Tiers::new(shared.groups.clone());
        let upkeep = Upkeep::new(&handle, shared.hurt_until.clone());
        let fills = Fills::new(&handle);
        Rc::new_cyclic(|this| Self {
            config,
            handle,
            shared,
            devices: Devices::new(vdrives),
            tiers,
            state: RefCell::new(state),
            entrance: Entrance::new(config.shard.0.into()),
            wal: WalWriter::default(),
            moves: Moves::default(),
            pin_promoter: PinPromoter::default(),
            checkpoints: CheckpointTurns::default(),
            fills,
            opening_lost: Cell::default(),
            space_waiters: SpaceWaiters::default(),
            requests: SpaceRequests::default(),
            lifecycle: Lifecycle::default(),
            reservations: Reservations::default(),
            upkeep,
            scratch: RefCell::default(),
            fetching: Fetching::default(),
            this: this.clone(),
        })
    }

    /// This shard, for tasks of its own.
    pub(crate) fn this(&self) -> Option<Rc<Self>> {
        self.this.upgrade()
    }

    /// The loop that it lives on.
    pub fn loop_handle(&self) -> &Handle {
        &self.handle
    }

    /// A vdrive of the pool.
    ///
    /// # Errors
    /// As [`Devices::get`].
    #[inline]
    pub(crate) fn vdrive(&self, id: VdriveId) -> Result<Rc<VdriveIo>, IoError> {
        self.devices.get(id)
    }

    /// Adds a vdrive that came to the pool.
    pub fn add_vdrive(&self, vdrive: Rc<VdriveIo>) {
        self.devices.insert(vdrive);
    }

    /// Forgets a vdrive that left the pool.
    pub fn remove_vdrive(&self, id: VdriveId) {
        self.check_left(id);
        self.devices.remove(id);
        self.tiers.forget(id);
        self.state.borrow().alloc.forget_vdrive(id);
    }

    /// Invariant: nothing is on a vdrive that leaves.
    fn check_left(&self, id: VdriveId) {
        check(|| {
            let used = self.used_on(id);
            (used > 0)
                .then(|| format!("vdrive {id} is removed while {used} blocks of it are in use"))
        });
    }

    /// The tier of a place.
    #[inline]
    pub(crate) fn class(&self, place: Place) -> Class {
        self.tiers.of(place.vdrive())
    }

    pub(crate) fn check(&self) -> Result<(), IoError> {
        self.state.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Durability is lost: every operation fails from here on.
    pub(crate) fn fail(&self, error: &IoError) {
        let mut state = self.state.borrow_mut();
        if state.failed.is_none() {
            tracing::error!(shard = self.config.shard.0, %error, "the shard has stopped");
            state.failed = Some(error.clone());
        }
        drop(state);
        self.wal.wake();
        self.space_waiters.wake();
        self.checkpoints.wake();
        self.fills.wake();
        self.reservations.wake();
        self.state.borrow().active.wake();
    }
}

/// A drive's error, said of a volume's block.
pub(crate) fn drive_error(error: block::DriveError, what: &str) -> IoError {
    let kind = match error {
        block::DriveError::Checksum => ErrorKind::Medium,
        _ => ErrorKind::Device,
    };
    IoError::new(kind, format!("{what}: {error}"))
}
