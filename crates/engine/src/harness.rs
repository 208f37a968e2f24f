//! Shards of a pool on one loop, without labels, jobs or threads: for the simulation, which opens
//! a pool some thousands of times per second to see what a crash left of it.
//!
//! Leaves out: everything that changes a pool's description.

use crate::control::types::EngineConfig;
use crate::pool::{AllSettings, Allowances, PoolDrive, build};
pub use crate::shard::Located;
use crate::shard::{Audit, By, Shard};
use crate::{EngineError, ErrorCode, device};
use block::{IoBuf, IoError};
use drives::OpenDrive;
use format::{BlockMask, PoolConfig};
use reactor::Handle;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use units::{CHUNK, CHUNK_BLOCKS, DriveId, Place, PoolId, ShardId};

/// A pool's shards.
pub struct Harness {
    pub(crate) handle: Handle,
    pub(crate) shards: Vec<Rc<Shard>>,
    shared: Arc<crate::shard::PoolShared>,
    config: PoolConfig,
    allowances: Allowances,
    /// Drives of each vdrive's parts, by the vdrive's number: no member of an opened pool comes to be on another one.
    drives: Vec<Vec<DriveId>>,
    /// The first layers of volumes, by which their chunks are divided.
    roots: BTreeMap<u32, u32>,
}

/// Forgets the calling thread's shards: the power of a simulation is gone.
pub fn forget_local() {
    crate::pool::forget_local();
}

impl Harness {
    /// Opens the pool that `config` describes as an import does: checkpoints, then journals, then
    /// new checkpoints. Drives that are not given are missing.
    ///
    /// # Errors
    /// As an import's.
    pub async fn open(
        handle: &Handle,
        pool: PoolId,
        config: &PoolConfig,
        drives: &[(DriveId, Arc<dyn OpenDrive>)],
        memory: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let mut pool_drives = Vec::new();
        for known in &config.drives {
            let damaged = |_| EngineError::new(ErrorCode::Damaged, "a drive's id is malformed");
            let id: DriveId = known.id.parse().map_err(damaged)?;
            let here = drives.iter().find(|(given, _)| *given == id);
            pool_drives.push(PoolDrive {
                id,
                spec: known.spec.clone(),
                drive: here.map(|(_, drive)| drive.clone()),
                size: known.size,
                shared: Arc::default(),
            });
        }
        let members = Arc::default();
        let blueprints = build::blueprints(config, &pool_drives, &members)?;
        let shared = build::shared(config, &blueprints, &members);
        let mut of_parts = Vec::new();
        for blueprint in &blueprints {
            let number = usize::from(blueprint.id);
            of_parts.resize(of_parts.len().max(number + 1), Vec::new());
            of_parts[number] = blueprint
                .pool_drives
                .iter()
                .map(|pool_drive| pool_drive.id)
                .collect();
        }
        let mut shards = Vec::new();
        for number in 0..config.shards {
            let shard_config = build::shard_config(pool, ShardId(number), config, memory);
            let vdrives = build::vdrives(&blueprints, handle)
                .map_err(|failed| EngineError::new(ErrorCode::Io, failed.to_string()))?;
            shards.push(Shard::new(
                shard_config,
                handle.clone(),
                shared.clone(),
                vdrives,
            ));
        }
        let explain =
            |failed: IoError| EngineError::new(crate::pool::code_of(&failed), failed.to_string());
        for shard in &shards {
            shard.load_checkpoint().await.map_err(explain)?;
        }
        for shard in &shards {
            shard.set_layers(&config.layers);
            shard.replay_journal(false).await.map_err(explain)?;
        }
        for shard in &shards {
            shard.end_recovery().await.map_err(explain)?;
        }
        for shard in &shards {
            for volume in &config.volumes {
                let live = if volume.next == 0 {
                    volume.live()
                } else {
                    volume.next
                };
                shard.set_volume(volume.id, live);
            }
            for snapshot in &config.snapshots {
                shard.set_reader(Self::reader(snapshot.layer), Some(snapshot.layer));
            }
        }
        let allowances = Allowances::new(config, &shared.space);
        let of_layers = allowances.of_layers(config);
        for shard in &shards {
            shard.set_allowances(&of_layers);
        }
        let mut settings = AllSettings::default();
        if settings.follow(config) {
            let of_layers = settings.of_layers(config);
            shards
                .iter()
                .for_each(|shard| shard.set_settings(&of_layers));
        }
        let handle = handle.clone();
        let volumes = config.volumes.iter();
        let volumes = volumes.map(|volume| (volume.id, config.root(volume.live())));
        let snapshots = config.snapshots.iter();
        let snapshots =
            snapshots.map(|known| (Self::reader(known.layer), config.root(known.layer)));
        Ok(Self {
            handle,
            shards,
            shared,
            config: config.clone(),
            allowances,
            drives: of_parts,
            roots: volumes.chain(snapshots).collect(),
        })
    }

    /// The number by which a snapshot's layer is read.
    pub fn reader(layer: u32) -> u32 {
        1 << 31 | layer
    }

    /// Reads from `offset` (bytes) of a volume, within one of its regions, as a shard serves a host.
    ///
    /// # Errors
    /// As a read's.
    pub async fn read(&self, volume: u32, offset: u64, buf: &mut IoBuf) -> Result<(), IoError> {
        let chunk = (offset / CHUNK as u64) as u32;
        let shard = self.shard_of(volume, chunk);
        let by = By::read(volume);
        shard.look_and_read(by, offset, buf).await
    }

    /// Evicts the pages that have summaries, as serving shards do while there is memory.
    pub fn make_summaries(&self) {
        self.shards
            .iter()
            .for_each(|shard| shard.make_all_summaries());
    }

    /// Where `count` blocks of a volume from `first` on lie, all of one chunk, as a read would find them: `found`
    /// gets each, in any order.
    ///
    /// # Errors
    /// `Gone` when the volume is, or the drive's error.
    pub async fn locate(
        &self,
        volume: u32,
        (first, count): (u64, u64),
        found: &mut Vec<Located>,
    ) -> Result<(), IoError> {
        let (chunk, first) = (
            (first / CHUNK_BLOCKS as u64) as u32,
            first as usize % CHUNK_BLOCKS,
        );
        let blocks = BlockMask::of(first, count as usize);
        let shard = self.shard_of(volume, chunk);
        shard.locate(volume, chunk, blocks, found).await
    }

    /// Whether some copy of a block that counts `is_right`, given its drive and the byte there.
    pub fn any_copy(&self, place: Place, is_right: impl Fn(DriveId, u64) -> bool) -> bool {
        let vdrive = self.shards[0].vdrive(place.vdrive());
        let drives = self.drives.get(usize::from(place.vdrive().0));
        vdrive.is_ok_and(|vdrive| {
            place.block() < vdrive.blocks()
                && vdrive.copies_of(place.block()).any(|(part, byte)| {
                    let drive = drives.and_then(|drives| drives.get(part));
                    drive.is_some_and(|drive| is_right(*drive, byte))
                })
        })
    }

    fn shard_of(&self, volume: u32, chunk: u32) -> &Rc<Shard> {
        let root = self.roots.get(&volume).copied().unwrap_or(volume);
        &self.shards[device::shard_of_chunk(root, chunk, self.shards.len())]
    }

    /// Audits every shard, and the sums that they share.
    ///
    /// # Errors
    /// When a page cannot be loaded.
    pub async fn audit(&self) -> Result<Audit, IoError> {
        let mut audits = Vec::new();
        for shard in &self.shards {
            audits.push(shard.audit().await?);
        }
        let space = &self.shared.space;
        let mut sum = Audit::sum(audits, space.stored());
        self.allowances.audit(&self.config, space, &mut sum);
        Ok(sum)
    }
}
