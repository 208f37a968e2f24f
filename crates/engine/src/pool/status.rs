//! Status of a pool.

use super::allowances::{Has, has};
use super::shards::{ask_all, code_of};
use super::{Pool, Result, lock, settings, targets, wear};
use crate::control::types::{
    DriveStatus, EngineError, IoCounters, LayoutSpec, MapCell, PoolStatus, Tier, VdriveStatus,
    VolumeStatus,
};
use crate::device::shard_of_chunk;
use crate::shard::{Audit, ShardStatus};
use format::{BlockCounts, LayoutConfig, PoolConfig, TierConfig, VdriveConfig, VolumeConfig};
use std::ops::Range;
use std::sync::atomic::Ordering;
use units::{BLOCK, CHUNK_BLOCKS, VdriveId, format_bytes};

impl Pool {
    pub(super) fn shard_statuses(&self) -> Result<Vec<ShardStatus>> {
        ask_all(&self.shards, |shard| async move { shard.status() })
    }

    /// Compares maps with space accounting.
    ///
    /// # Errors
    /// When a page cannot be loaded.
    pub fn audit(&self) -> Result<Audit> {
        let fast = lock(&self.settings).fast();
        let audits = ask_all(&self.shards, |shard| async move { shard.audit().await })?;
        let audits: std::result::Result<Vec<_>, _> = audits.into_iter().collect();
        let audits =
            audits.map_err(|failed| EngineError::new(code_of(&failed), failed.to_string()))?;
        let mut sum = Audit::sum(audits, self.shared.space.stored());
        lock(&self.allowances).audit(&self.config(), &self.shared.space, &mut sum);
        lock(&self.settings).audit(&self.config(), &fast, &mut sum);
        Ok(sum)
    }

    /// The pool's state.
    ///
    /// # Errors
    /// When the pool is closing.
    pub fn status(&self) -> Result<PoolStatus> {
        Ok(self.status_by(&self.shard_statuses()?, &self.config()))
    }

    pub(super) fn status_by(&self, shards: &[ShardStatus], config: &PoolConfig) -> PoolStatus {
        let mut counts = BlockCounts::default();
        shards
            .iter()
            .flat_map(|shard| shard.volumes.values())
            .for_each(|totals| counts += totals.counts);
        let vdrives: Vec<_> = config
            .vdrives
            .iter()
            .map(|vdrive| self.vdrive_status(vdrive, config, shards))
            .collect();
        let space = &self.shared.space;
        let bytes = |blocks: i64| blocks.max(0) as u64 * BLOCK as u64;
        let (state, messages) = self.health(shards, &vdrives, config);
        let fills = self.fills(shards, &vdrives, &counts);
        let sized = config.volumes.iter().filter(|volume| !volume.deleting);
        let fast = vdrives.iter().filter(|vdrive| vdrive.tier == Tier::Fast);
        PoolStatus {
            id: self.id.to_string(),
            name: self.name.clone(),
            state,
            messages,
            policy: self.shared.policy(),
            shards: config.shards,
            capacity: bytes(space.capacity()),
            used: counts.mapped() * BLOCK as u64,
            reserved: bytes(space.promised()),
            overpromised: bytes(-space.available()),
            promised: sized.map(|volume| volume.size).sum(),
            fills,
            warn_at: config.warn_at.clone(),
            fast_capacity: fast.map(|vdrive| vdrive.capacity).sum(),
            fast_dirty: counts.fast * BLOCK as u64,
            fast_shadow: counts.clean * BLOCK as u64,
            vdrives,
            volumes: config.volumes.len(),
            promotion_held: self.shared.promotion_held.load(Ordering::Relaxed),
            map_bytes: shards.iter().map(|shard| shard.map_bytes).sum(),
            ram_bytes: shards.iter().map(|shard| shard.ram_bytes).sum(),
            ram_limit: shards.iter().map(|shard| shard.ram_limit).sum(),
            scrub: self.scrub_summary(),
            budget: self.budget_status(shards),
            old: self.old_status(config),
            opening_lost: config.opening_lost,
            generation: self.keeper.generation.load(Ordering::Acquire),
        }
    }

    fn health(
        &self,
        shards: &[ShardStatus],
        vdrives: &[VdriveStatus],
        config: &PoolConfig,
    ) -> (String, Vec<String>) {
        let mut messages = Vec::new();
        let mut state = "online";
        for vdrive in vdrives.iter().filter(|vdrive| vdrive.state == "degraded") {
            state = "degraded";
            for drive in vdrive.drives.iter().filter(|drive| drive.state != "online") {
                messages.push(absence(vdrive, drive, &self.name));
            }
        }
        for drive in vdrives.iter().flat_map(|vdrive| &vdrive.drives) {
            if drive.slow {
                messages.push(format!(
                    "drive {} is not responding or far slower than usual ({} requests timed out): check its cable and its health, or replace it",
                    drive.spec, drive.timeouts
                ));
            }
        }
        messages.extend(self.short_messages(config));
        for old in self.old_status(config) {
            messages.push(format!(
                "{}: later writes are lost; scrub the pool with `convect pool scrub {}`",
                old.message, self.name
            ));
        }
        if config.opening_lost > 0 {
            messages.push(lost_message(config.opening_lost, &self.name));
        }
        let over = -self.shared.space.available();
        if over > 0 {
            messages.push(format!(
                "used and reserved space exceeds the pool by {}: only volumes with free \
                 reservation can grow; add a vdrive, delete data or reduce reservations",
                format_bytes(over as u64 * BLOCK as u64)
            ));
        }
        if self.shared.space.full.load(Ordering::Relaxed) {
            // Enough for any part of a write.
            if self.shared.space.has(CHUNK_BLOCKS as i64) && self.free_share() > 0 {
                self.shared.space.full.store(false, Ordering::Relaxed);
            } else {
                state = "full";
                messages.push(
                    "writes that need space fail, reads continue: add a vdrive or delete data"
                        .to_owned(),
                );
            }
        }
        if config.meta.parts.len() == 1
            && config
                .vdrives
                .iter()
                .any(|vdrive| vdrive.tier == TierConfig::Slow)
        {
            messages.push(
                "the metadata is on one drive only: if it fails, the pool is lost".to_owned(),
            );
        }
        for failed in shards.iter().filter_map(|shard| shard.failed.as_ref()) {
            state = "failed";
            messages.push(format!(
                "a shard has stopped: {failed}; repair the drive, then export and import the pool"
            ));
        }
        (state.to_owned(), messages)
    }

    fn free_share(&self) -> u32 {
        use crate::space::Class;
        self.shared.groups.free_groups(Class::Fast) + self.shared.groups.free_groups(Class::Slow)
    }

    fn vdrive_status(
        &self,
        vdrive: &VdriveConfig,
        config: &PoolConfig,
        shards: &[ShardStatus],
    ) -> VdriveStatus {
        let pool_drives = lock(&self.pool_drives);
        let drives: Vec<DriveStatus> = vdrive
            .parts
            .iter()
            .filter_map(|part| {
                let pool_drive = pool_drives
                    .iter()
                    .find(|pool_drive| pool_drive.id.to_string() == part.drive)?;
                let members = self.members.all();
                let behind: Vec<_> = members
                    .iter()
                    .filter(|(_, member)| member.drive() == pool_drive.id && !member.is_in())
                    .map(|(_, member)| member)
                    .collect();
                let syncing = behind.iter().all(|member| member.takes_writes());
                let known = config.drives.iter().find(|known| known.id == part.drive);
                let by_hand = known.is_some_and(|known| known.offline);
                let since_s = known.map_or(0, |known| known.wear.since_s);
                let state = match &pool_drive.drive {
                    None if by_hand => "offline",
                    None => "missing",
                    Some(_) if behind.is_empty() => "online",
                    Some(_) if syncing => "syncing",
                    Some(_) => "out",
                };
                let why = behind
                    .first()
                    .map_or_else(String::new, |member| member.why());
                let count =
                    |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
                let (sums, times) = (
                    pool_drive.shared.tally.sums(),
                    pool_drive.shared.tally.times(),
                );
                Some(DriveStatus {
                    id: pool_drive.id.to_string(),
                    spec: pool_drive.spec.clone(),
                    size: pool_drive.size,
                    state: state.to_owned(),
                    reads: sums.reads,
                    writes: sums.writes,
                    read_bytes: sums.read_bytes,
                    write_bytes: sums.written(),
                    read_ns: times.read_ns,
                    write_ns: times.write_ns,
                    spread: times.spread,
                    errors: count(&pool_drive.shared.errors),
                    repaired: count(&pool_drive.shared.repaired),
                    timeouts: count(&pool_drive.shared.timeouts),
                    slow: pool_drive.shared.is_slow(),
                    why,
                    synced_percent: self.synced_percent(pool_drive.id),
                    wear: wear::status(&pool_drive.shared.worn(since_s)),
                })
            })
            .collect();
        let used: u64 = shards
            .iter()
            .filter_map(|shard| shard.used.get(&VdriveId(vdrive.id)))
            .sum();
        let groups = self
            .shared
            .groups
            .space(VdriveId(vdrive.id))
            .map_or(0, |space| space.groups);
        let state = match drives.iter().all(|drive| drive.state == "online") {
            _ if vdrive.evacuating => "evacuating",
            true => "online",
            false => "degraded",
        };
        VdriveStatus {
            id: vdrive.id,
            tier: match vdrive.tier {
                TierConfig::Fast => Tier::Fast,
                TierConfig::Slow => Tier::Slow,
            },
            layout: match vdrive.layout {
                LayoutConfig::Concat => LayoutSpec::Concat,
                LayoutConfig::Mirror => LayoutSpec::Mirror,
                LayoutConfig::Stripe { chunk_blocks } => LayoutSpec::Stripe {
                    chunk: chunk_blocks * BLOCK as u64,
                },
            },
            state: state.to_owned(),
            capacity: u64::from(groups) * config.group_blocks * BLOCK as u64,
            used: used * BLOCK as u64,
            drives,
        }
    }

    /// Counters of the pool.
    ///
    /// # Errors
    /// When the pool is closing.
    pub fn counters(&self) -> Result<IoCounters> {
        Ok(self.counters_by(&self.shard_statuses()?))
    }

    pub(super) fn counters_by(&self, shards: &[ShardStatus]) -> IoCounters {
        let mut sum = IoCounters::default();
        let each = shards.iter();
        each.for_each(|shard| add(&mut sum, &shard.counters));
        lock(&self.initiators).add_to(&mut sum, None);
        sum
    }

    /// Counters of a volume.
    ///
    /// # Errors
    /// When there is no such volume.
    pub fn volume_counters(&self, name: &str) -> Result<IoCounters> {
        let volume = self.find_volume(name)?;
        Ok(self.volume_counters_by(&volume, &self.shard_statuses()?))
    }

    pub(super) fn volume_counters_by(
        &self,
        volume: &VolumeConfig,
        shards: &[ShardStatus],
    ) -> IoCounters {
        let mut sum = IoCounters::default();
        let totals = shards
            .iter()
            .filter_map(|shard| shard.volumes.get(&volume.live()));
        totals.for_each(|totals| add(&mut sum, &totals.counters));
        lock(&self.initiators).add_to(&mut sum, Some(volume.id));
        sum
    }

    /// The pool's volumes.
    ///
    /// # Errors
    /// When the pool is closing.
    pub fn volumes(&self) -> Result<Vec<VolumeStatus>> {
        let shards = self.shard_statuses()?;
        let config = self.config();
        let has = has(&config.holders(), &shards);
        let of = |volume: &VolumeConfig| has.get(&volume.id).copied().unwrap_or_default();
        let status = |volume| self.status_of(volume, of(volume), &shards);
        Ok(config.volumes.iter().map(status).collect())
    }

    pub(super) fn volume_status(
        &self,
        volume: &VolumeConfig,
        shards: &[ShardStatus],
    ) -> VolumeStatus {
        let has = has(&lock(&self.config).holders(), shards);
        let of = has.get(&volume.id).copied().unwrap_or_default();
        self.status_of(volume, of, shards)
    }

    pub(super) fn status_of(
        &self,
        volume: &VolumeConfig,
        has: Has,
        shards: &[ShardStatus],
    ) -> VolumeStatus {
        let totals = shards
            .iter()
            .filter_map(|shard| shard.volumes.get(&volume.live()));
        let mapped: u64 = totals.map(|totals| totals.counts.mapped()).sum();
        VolumeStatus {
            id: volume.id,
            name: volume.name.clone(),
            pool: self.name.clone(),
            size: volume.size,
            lba_size: volume.lba_size,
            thick: volume.thick,
            mapped: mapped * BLOCK as u64,
            held: has.stored * BLOCK as u64,
            quota: volume.quota,
            reservation: volume.reservation,
            reserved: self.unused_promise(volume.id),
            fast: has.fast * BLOCK as u64,
            knobs: settings::status(
                &volume.knobs,
                self.budget(volume.id).as_deref(),
                &self.bypassed(volume.id),
            ),
            targets: targets::status(&volume.targets),
            qos: self.volume_qos(volume.id),
            serial: self.serial(volume.id),
            state: if volume.deleting {
                "deleting"
            } else {
                "online"
            }
            .to_owned(),
            receiving: self.receiving(volume.id),
        }
    }

    /// This range of the volume's LBA space, up to its end, in `cells` equal parts.
    ///
    /// # Errors
    /// When there is no such volume, or a page of its map cannot be read.
    pub fn map(&self, name: &str, bytes: Range<u64>, cells: usize) -> Result<Vec<MapCell>> {
        let volume = self.find_volume(name)?;
        let cells = cells.clamp(1, 4096);
        let shards = self.shards.len();
        let (id, size) = (volume.id, volume.size);
        let root = self.config().root(volume.live());
        let parts: Vec<_> = self
            .shards
            .iter()
            .enumerate()
            .map(|(index, handle)| {
                let bytes = bytes.clone();
                handle.ask(move |shard| async move {
                    let mut cells = vec![MapCell::default(); cells];
                    let mine = move |chunk| shard_of_chunk(root, chunk, shards) == index;
                    shard
                        .map(id, size, bytes, mine, &mut cells)
                        .await
                        .map(|()| cells)
                })
            })
            .collect();
        let mut sum = vec![MapCell::default(); cells];
        for part in parts {
            let closing =
                |_| crate::EngineError::new(crate::ErrorCode::Busy, "the pool is closing");
            let part = reactor::control::receive(part).map_err(closing)?;
            let part = part.map_err(|failed| {
                crate::EngineError::new(super::shards::code_of(&failed), failed.to_string())
            })?;
            for (cell, more) in sum.iter_mut().zip(part) {
                cell.add(&more);
            }
        }
        Ok(sum)
    }
}

pub(super) fn add(sum: &mut IoCounters, more: &IoCounters) {
    sum.reads += more.reads;
    sum.writes += more.writes;
    sum.read_bytes += more.read_bytes;
    sum.write_bytes += more.write_bytes;
    sum.flushes += more.flushes;
    sum.blocks_ram += more.blocks_ram;
    sum.blocks_fast += more.blocks_fast;
    sum.blocks_slow += more.blocks_slow;
    sum.blocks_zero += more.blocks_zero;
    sum.promoted_bytes += more.promoted_bytes;
    sum.demoted_bytes += more.demoted_bytes;
    sum.read_ns += more.read_ns;
    sum.write_ns += more.write_ns;
}

fn absence(vdrive: &VdriveStatus, drive: &DriveStatus, pool: &str) -> String {
    let (id, spec, why) = (vdrive.id, &drive.spec, &drive.why);
    let mirror = "its mirror has all data";
    match drive.state.as_str() {
        "syncing" => format!(
            "vdrive {id}: drive {spec} is being resynced, {} %",
            drive.synced_percent.unwrap_or(0)
        ),
        "offline" => format!(
            "vdrive {id}: drive {spec} is offline; {mirror}: bring it online with `convect pool online {pool} {spec}`"
        ),
        state => format!(
            "vdrive {id}: drive {spec} is {state} ({why}); {mirror}: bring it online with `convect pool online`, or replace it soon"
        ),
    }
}

/// The message about blocks that openings found lost.
fn lost_message(blocks: u64, pool: &str) -> String {
    format!(
        "{blocks} blocks of {BLOCK} bytes are lost: their newest data could not be read when the pool was \
         opened; the daemon's log lists them; rewrite or restore them, then scrub the pool with `convect pool scrub {pool}`"
    )
}
