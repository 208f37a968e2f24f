//! Creating, importing and closing pools.

use super::keeper::Labelled;
use super::plan::{self, Planned, Scale};
use super::pool_drives::{MadeFiles, PoolDrive, open_drive};
use super::scan::Found;
use super::shards::{ask_all, try_all};
use super::tails::{self, AllLeft, Tails};
use super::{Allowances, Keeper, Pool, Result, ShardHandle, build, error, evidence, labels, lock};
use crate::control::import::ImportOptions;
use crate::control::types::{EngineConfig, EngineError, ErrorCode, PoolSpec, SpacePolicy};
use crate::control::{Jobs, wait_for};
use crate::device::{Seen, VolumeDevice};
use crate::vdrive::{DriveShared, Members};
use block::{Drive, Geometry};
use drives::OpenDrive;
use format::{DATA_START, DriveConfig, Features, Policy, PoolConfig, VolumeConfig};
use reactor::{Remote, control};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use units::mutation::{Mutation, is_on};
use units::{BLOCK, DriveId, PoolId};

/// Random 128 bits for an id.
pub(super) fn random_id() -> Result<u128> {
    control::entropy().map_err(|failed| {
        EngineError::new(
            ErrorCode::Io,
            format!("the system returns no random numbers: {failed}"),
        )
    })
}

pub(super) fn random_drive_id() -> Result<DriveId> {
    random_id().map(DriveId)
}

/// Resources of the engine for an opening.
pub struct Host<'a> {
    /// Loops.
    pub remotes: &'a [Remote],
    /// Memory.
    pub config: &'a EngineConfig,
    /// Jobs.
    pub jobs: &'a Arc<Jobs>,
}

impl Pool {
    /// Creates a pool and opens it. Drives are labelled last: until then the pool does not exist.
    ///
    /// # Errors
    /// A sentence; the drives are unchanged, except for space without labels.
    pub fn create(host: &Host<'_>, spec: &PoolSpec) -> Result<Arc<Self>> {
        plan::check_name("pool", &spec.name)?;
        let drives = spec.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
        let made = MadeFiles::make(drives)?;
        Self::create_over(host, spec).inspect_err(|_| made.remove())
    }

    fn create_over(host: &Host<'_>, spec: &PoolSpec) -> Result<Arc<Self>> {
        plan::check_name("pool", &spec.name)?;
        if spec.vdrives.is_empty() {
            return error(
                ErrorCode::Invalid,
                "a pool needs at least one vdrive: specify a tier and its drives",
            );
        }
        spec.vdrives.iter().try_for_each(plan::check_vdrive)?;
        plan::check_redundancy(spec)?;
        let mut pool_drives: Vec<PoolDrive> = Vec::new();
        let mut planned = Vec::new();
        for vdrive in &spec.vdrives {
            let mut of_vdrive = Vec::new();
            for text in &vdrive.drives {
                let pool_drive = new_drive(host, text, spec.force, &pool_drives)?;
                of_vdrive.push(Planned {
                    id: pool_drive.id,
                    spec: pool_drive.spec.clone(),
                    size: pool_drive.size,
                });
                pool_drives.push(pool_drive);
            }
            planned.push((vdrive.clone(), of_vdrive));
        }
        let config = plan_pool(host, spec, &planned)?;
        let id = PoolId(random_id()?);
        let left = AllLeft::none(config.shards);
        let pool = Self::assemble(host, id, config, 0, pool_drives, (BTreeMap::new(), left))?;
        let made = try_all(
            &pool.shards,
            "the pool's layout cannot be planned",
            |shard| async move { shard.format().await },
        )
        .and_then(|()| pool.begin_opening(|config| pool.save(config, false)));
        if let Err(failed) = made {
            pool.abandon_opening();
            return Err(failed);
        }
        pool.serve()?;
        Ok(pool)
    }

    /// Opens a pool from its drives.
    ///
    /// # Errors
    /// Names the drives that are missing, or what is damaged. Nothing was changed then but
    /// checkpoints, and labels that record which members lack them.
    pub fn import(
        host: &Host<'_>,
        found: Vec<Found>,
        id: PoolId,
        options: ImportOptions,
    ) -> Result<Arc<Self>> {
        let mine: Vec<Found> = found
            .into_iter()
            .filter(|drive| drive.label.pool == id)
            .collect();
        let newest = mine.iter().max_by_key(|drive| drive.label.generation);
        let Some(newest) = newest else {
            return error(
                ErrorCode::NotFound,
                "no drive of the pool was found: attach its drives",
            );
        };
        let (mut config, generation) = (newest.label.config.clone(), newest.label.generation);
        let evidence = evidence::weigh(&mut config, generation, &mine, &options)?;
        let mut pool_drives = Vec::new();
        let mut missing = Vec::new();
        for known in &config.drives {
            let id: DriveId = known
                .id
                .parse()
                .map_err(|_| EngineError::new(ErrorCode::Damaged, "a drive's id is malformed"))?;
            let here = mine.iter().find(|drive| drive.label.drive == id);
            let here = here.filter(|_| !known.offline);
            let cut = evidence.is_cut(&known.id);
            if here.is_none() && !known.offline {
                missing.push(known.spec.clone());
            }
            let here = here.filter(|_| !cut);
            pool_drives.push(PoolDrive {
                id,
                spec: here.map_or_else(|| known.spec.clone(), |drive| drive.spec.clone()),
                drive: here.map(|drive| drive.drive.clone()),
                size: known.size,
                shared: DriveShared::new(host.config.drive_limits, known.wear),
            });
        }
        if !missing.is_empty() {
            super::stale_drive::refuse_older(&host.remotes[0], id, &config, &pool_drives)?;
        }
        let short = &evidence.short;
        evidence::check_missing(&config, &pool_drives, &missing, short, options.missing)?;
        let drives = mine.iter();
        let drives = drives.map(|found| (found.label.drive, found.drive.clone()));
        let deadline_ns = host.config.drive_limits.deadline_ns;
        let flushed = match is_on(Mutation::OpeningUnflushed) {
            true => drives.map(|(drive, _)| drive).collect(),
            false => labels::flush_all(&host.remotes[0], drives.collect(), deadline_ns)?,
        };
        let labelled = mine
            .iter()
            .map(|found| (found.label.drive, found.label.generation));
        let labelled = labelled.filter(|(drive, _)| flushed.contains(drive));
        let labelled = labelled.collect();
        // The closing waits until the pool's drives are no longer in use.
        drop(mine);
        let left = tails::find(&host.config.lasting, id, &config, &pool_drives)?;
        let pool = Self::assemble(host, id, config, generation, pool_drives, (labelled, left))?;
        let opened = pool
            .recover(options.accept_old)
            .and_then(|()| pool.refresh_specs());
        if let Err(failed) = opened {
            pool.abandon_opening();
            return Err(failed);
        }
        pool.serve()?;
        Ok(pool)
    }

    /// Recovers all shards from their checkpoints and journals, then writes new checkpoints.
    fn recover(&self, accept_old: bool) -> Result<()> {
        let what = format!("pool {}", self.name);
        let shards = &self.shards;
        try_all(shards, &what, |shard| async move {
            shard.load_checkpoint().await
        })?;
        self.tell_all_layers()?;
        try_all(shards, &what, move |shard| async move {
            shard.replay_journal(accept_old).await
        })?;
        self.check_marks(accept_old)?;
        // A member that is missing, or fails from here on, lacks the next valid state. Until now it does not: as
        // long as nothing but the others is damaged, the pool opens with it.
        if !is_on(Mutation::OpeningAlone) {
            self.members.enforce();
        }
        if is_on(Mutation::TailGoneEarly) {
            self.tails.forget_left();
        }
        try_all(
            shards,
            &what,
            |shard| async move { shard.end_recovery().await },
        )
    }

    /// Begins to use new tails of this opening, which `save` records in a label.
    fn begin_opening(&self, save: impl FnOnce(PoolConfig) -> Result<()>) -> Result<()> {
        let mut config = self.config();
        let opening = self.make_tails()?;
        if !is_on(Mutation::TailUnnamed) {
            config.opening = opening;
        }
        save(config)?;
        self.use_tails()
    }

    /// After a failed opening: tails of earlier ones are kept, and its own are dropped.
    fn abandon_opening(&self) {
        self.tails.forget();
        self.drop_shards();
    }

    fn refresh_specs(&self) -> Result<()> {
        let pool_drives = lock(&self.pool_drives).clone();
        let announced: Vec<(u32, u32, bool)> = lock(&self.config)
            .volumes
            .iter()
            .filter(|volume| volume.next != 0)
            .map(|volume| (volume.id, volume.next, volume.deleting))
            .collect();
        let mut written = BTreeSet::new();
        for (_, layer, _) in &announced {
            let layer = *layer;
            let empty = ask_all(
                &self.shards,
                move |shard| async move { shard.is_empty(layer) },
            )?;
            if empty.contains(&false) && !is_on(Mutation::AnnouncedLost) {
                written.insert(layer);
            }
        }
        let lost = ask_all(&self.shards, |shard| async move { shard.opening_lost() })?;
        self.begin_opening(|mut config| {
            config.note_opening_lost(lost.iter().sum());
            // A switched but unnamed layer has taken writes.
            for (volume, layer, deleting) in &announced {
                if written.contains(layer) {
                    config.advance(*volume);
                } else if *deleting {
                    config.withdraw(*volume);
                }
            }
            for known in &mut config.drives {
                if let Some(pool_drive) = pool_drives
                    .iter()
                    .find(|pool_drive| pool_drive.id.to_string() == known.id)
                {
                    known.spec.clone_from(&pool_drive.spec);
                }
            }
            config.note_layers();
            self.save(config, false)
        })
    }

    fn assemble(
        host: &Host<'_>,
        id: PoolId,
        config: PoolConfig,
        generation: u64,
        pool_drives: Vec<PoolDrive>,
        (labelled, left): (BTreeMap<DriveId, u64>, AllLeft),
    ) -> Result<Arc<Self>> {
        let members = Arc::<Members>::default();
        let blueprints = build::blueprints(&config, &pool_drives, &members)?;
        let shared = build::shared(&config, &blueprints, &members);
        let (left, names) = left.split();
        let place = (&config, &blueprints[..], &shared);
        let shards = build::place_shards(id, place, host.remotes, host.config, left)?;
        let allowances = Mutex::new(Allowances::new(&config, &shared.space));
        let found = Labelled {
            generation,
            drives: labelled,
        };
        let marks = shared.marks.clone();
        let keeper = Keeper::new(id, config, found, pool_drives, members.clone(), marks);
        let running = keeper.clone();
        host.remotes[0].spawn(move |handle| running.run(handle));
        let pool = Arc::new(Self {
            id,
            name: keeper.name.clone(),
            shared,
            config: keeper.config.clone(),
            pool_drives: keeper.pool_drives.clone(),
            members,
            tails: Tails::new(host.config.lasting.clone(), id, names),
            keeper,
            shards,
            allowances,
            settings: Mutex::default(),
            tenants: Mutex::default(),
            initiators: Mutex::default(),
            exported: Mutex::default(),
            devices: Mutex::default(),
            remote: host.remotes[0].clone(),
            jobs: host.jobs.clone(),
            resyncs: Mutex::default(),
            changing: Mutex::new(()),
            readers: Mutex::default(),
            reaping: Mutex::default(),
            scrub: Mutex::default(),
        });
        pool.update_capacity();
        Ok(pool)
    }

    /// Starts to serve: volumes, background tasks, and unfinished jobs.
    fn serve(self: &Arc<Self>) -> Result<()> {
        self.members.enforce();
        let config = self.config();
        let volumes: Vec<(u32, u32)> = config
            .volumes
            .iter()
            .map(|volume| (volume.id, volume.live()))
            .collect();
        ask_all(&self.shards, move |shard| {
            let volumes = volumes.clone();
            async move {
                volumes
                    .iter()
                    .for_each(|(id, live)| shard.set_volume(*id, *live));
            }
        })?;
        self.tell_holders()?;
        self.tell_budget()?;
        self.tell_tenants()?;
        for handle in &self.shards {
            let port = handle.port.clone();
            let started = handle.ask(|shard| async move {
                shard.start();
                shard.loop_handle().spawn(shard.clone().serve(port));
            });
            control::receive(started)
                .map_err(|_| EngineError::new(ErrorCode::Io, "a shard did not start"))?;
        }
        for volume in config.volumes.iter().filter(|volume| !volume.deleting) {
            lock(&self.devices).insert(volume.id, self.device(volume));
        }
        self.resume_jobs(&config);
        Ok(())
    }

    pub(super) fn device(&self, volume: &VolumeConfig) -> Arc<VolumeDevice> {
        let root = lock(&self.config).root(volume.live());
        self.make_device((volume.id, root), volume.size, volume, None)
    }

    /// A device of a volume, or of its snapshot of an epoch, by its number and the one by which its
    /// chunks are divided; `size` in bytes.
    pub(super) fn make_device(
        &self,
        (id, root): (u32, u32),
        size: u64,
        volume: &VolumeConfig,
        epoch: Option<u32>,
    ) -> Arc<VolumeDevice> {
        let ports = self.shards.iter().map(|shard| shard.port.clone()).collect();
        let geometry = Geometry {
            size,
            lba_size: volume.lba_size,
            block_size: BLOCK as u32,
            read_only: epoch.is_some(),
            serial: self.serial(id),
        };
        let seen = Seen {
            config: self.config.clone(),
            volume: volume.id,
            epoch,
        };
        VolumeDevice::new((id, root), ports, geometry, seen)
    }

    /// Stable, and different for every volume of every pool: 20 bytes.
    pub(super) fn serial(&self, volume: u32) -> String {
        format!("{:012x}{volume:08x}", self.id.0 >> 80)
    }

    /// Closes volumes and shards and makes everything durable.
    ///
    /// # Errors
    /// A drive's error; the pool is closed nevertheless, and flushed data is safe.
    pub fn close(&self, exported: bool) -> Result<()> {
        self.jobs.cancel_pool(&self.name);
        let devices: Vec<_> = std::mem::take(&mut *lock(&self.devices))
            .into_values()
            .collect();
        devices.iter().for_each(|device| device.end());
        // Held operations proceed now.
        let none = Arc::default();
        if let Err(failed) = self.give_tenants(none) {
            tracing::warn!(error = %failed, "shards could not be notified of the closing");
        }
        if !wait_for(|| devices.iter().all(|device| device.in_flight() == 0)) {
            let pool = self.name.as_str();
            tracing::error!(
                pool,
                "hosts' requests are aborted: a drive is not responding"
            );
        }
        self.shards.iter().for_each(|shard| shard.port.close());
        let closed = try_all(
            &self.shards,
            "the pool was closed with an error",
            |shard| async move { shard.close().await },
        );
        let mut config = self.config();
        self.tell_wear(&mut config);
        // Twice: the second label records that every drive has the first, so that a drive restored to the present state is recognised
        // as outdated.
        let saved = self.save(config, exported);
        let saved = saved.and_then(|()| self.save(self.config(), exported));
        if closed.is_ok() {
            // All of their content is on the drives.
            self.tails.forget();
        }
        self.drop_shards();
        closed.and(saved)
    }

    /// Closes without making anything durable, for a pool that is destroyed.
    pub fn abandon(&self) {
        self.jobs.cancel_pool(&self.name);
        lock(&self.devices).values().for_each(|device| device.end());
        self.shards.iter().for_each(|shard| shard.port.close());
        let _ = ask_all(&self.shards, |shard| async move { shard.close().await });
        self.members.close();
        let drives = lock(&self.pool_drives).clone();
        self.clear_labels(&drives);
        self.tails.forget();
        self.drop_shards();
    }

    fn drop_shards(&self) {
        self.members.close();
        self.shards.iter().for_each(ShardHandle::remove);
        let drives: Vec<_> = lock(&self.pool_drives)
            .iter_mut()
            .filter_map(|pool_drive| pool_drive.drive.take())
            .collect();
        // Tasks that end on their threads hold the last queues; the lock goes with them.
        let is_free = |drive: &Arc<dyn OpenDrive>| Arc::strong_count(drive) == 1;
        if !wait_for(|| drives.iter().all(is_free)) {
            for drive in drives.iter().filter(|drive| !is_free(drive)) {
                let (pool, spec) = (self.name.as_str(), Drive::info(&**drive).spec);
                tracing::error!(pool, %spec, "a drive of a closed pool stays locked until its last request ends");
            }
        }
        self.tails.close();
    }
}

/// Opens a drive that is to join a pool.
pub(super) fn new_drive(
    host: &Host<'_>,
    text: &str,
    force: bool,
    others: &[PoolDrive],
) -> Result<PoolDrive> {
    let canonical =
        drives::canonical(text).map_err(|failed| super::pool_drives::open_error(&failed))?;
    let identity = drives::identity(&canonical);
    let same = |other: &PoolDrive| {
        other.spec == canonical || (identity.is_some() && drives::identity(&other.spec) == identity)
    };
    if others.iter().any(same) {
        return error(
            ErrorCode::Exists,
            format!("{text} is given twice, or is already a drive of this pool"),
        );
    }
    let (spec, drive) = open_drive(text, force)?;
    labels::refuse_labelled(&host.remotes[0], &drive, force)?;
    let size = Drive::info(&*drive).size;
    Ok(PoolDrive {
        id: random_drive_id()?,
        spec,
        drive: Some(drive),
        size,
        shared: DriveShared::new(host.config.drive_limits, format::WearConfig::default()),
    })
}

fn plan_pool(
    host: &Host<'_>,
    spec: &PoolSpec,
    planned: &[(crate::control::types::VdriveSpec, Vec<Planned>)],
) -> Result<PoolConfig> {
    let total: u64 = planned
        .iter()
        .flat_map(|(_, drives)| drives)
        .map(|drive| drive.size)
        .sum();
    plan::check_total(total)?;
    let scale = Scale::of(total);
    let scale = Scale {
        journal_blocks: host.config.journal_blocks.unwrap_or(scale.journal_blocks),
        meta_groups: host.config.meta_groups,
        ..scale
    };
    let shards = if spec.shards == 0 {
        host.remotes.len() as u16
    } else {
        spec.shards
    };
    if shards > 64 {
        return error(
            ErrorCode::Invalid,
            format!("a pool has at most 64 shards, not {shards}"),
        );
    }
    let meta = plan::meta(shards, planned, scale)?;
    let start = |id: DriveId| {
        let part = meta.parts.iter().find(|part| part.drive == id.to_string());
        part.map_or(DATA_START, |part| part.offset + part.blocks * BLOCK as u64)
    };
    let mut vdrives = Vec::new();
    for (index, (vdrive, drives)) in planned.iter().enumerate() {
        vdrives.push(plan::vdrive(index as u8 + 1, vdrive, drives, start, scale)?);
    }
    let drives = planned.iter().flat_map(|(_, drives)| drives);
    Ok(PoolConfig {
        name: spec.name.clone(),
        policy: match spec.policy {
            SpacePolicy::FastFirst => Policy::FastFirst,
            SpacePolicy::SlowFirst => Policy::SlowFirst,
        },
        shards,
        group_blocks: scale.group_blocks,
        drives: drives
            .map(|drive| DriveConfig {
                id: drive.id.to_string(),
                spec: drive.spec.clone(),
                size: drive.size,
                offline: false,
                labelled: 0,
                wear: format::WearConfig::default(),
            })
            .collect(),
        meta,
        vdrives,
        volumes: Vec::new(),
        layers: Vec::new(),
        snapshots: Vec::new(),
        schedules: Vec::new(),
        receiving: Vec::new(),
        reservations: Vec::new(),
        exports: Vec::new(),
        next_volume: 1,
        scrub: format::ScrubConfig::default(),
        warn_at: format::WARN_AT.to_vec(),
        promotion_budget: 0,
        qos: format::QosConfig::default(),
        audit_anchor: None,
        paused: Vec::new(),
        opening: String::new(),
        checkpoints: Vec::new(),
        old: Vec::new(),
        opening_lost: 0,
        unknown: BTreeMap::new(),
        features: Features::default(),
    })
}
