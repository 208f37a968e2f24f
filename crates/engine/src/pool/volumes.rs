//! Volumes of a pool: making, resizing, deleting.

use super::allowances::promise;
use super::shards::{ask_all, try_all};
use super::{Pool, Result, error, limits, lock, plan};
use crate::control::qos::PolicyChoice;
use crate::control::types::{EngineError, ErrorCode, VolumeSpec, VolumeStatus};
use crate::control::wait_for;
use crate::device::VolumeDevice;
use crate::shard::Progress;
use format::{KnobsConfig, PoolConfig, VolumeConfig};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{BLOCK, CHUNK, format_bytes};

/// Smallest and largest volume, in bytes.
const SIZES: std::ops::RangeInclusive<u64> = CHUNK as u64..=256 << 40;

fn check_size(size: u64) -> Result<()> {
    if SIZES.contains(&size) && size.is_multiple_of(BLOCK as u64) {
        return Ok(());
    }
    error(
        ErrorCode::Invalid,
        format!(
            "the size of a volume is 1 MiB to 256 TiB in multiples of 4 KiB, not {size} bytes ({})",
            format_bytes(size)
        ),
    )
}

impl Pool {
    pub(super) fn find_volume(&self, name: &str) -> Result<VolumeConfig> {
        let config = lock(&self.config);
        match config.volumes.iter().find(|volume| volume.name == name) {
            Some(volume) => Ok(volume.clone()),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "pool {} has no volume '{name}': see `convect volume list`",
                    self.name
                ),
            ),
        }
    }

    /// Creates a volume.
    ///
    /// # Errors
    /// `Exists`, `Invalid`, or `NoSpace` if the space to reserve is not available.
    pub fn create_volume(&self, spec: &VolumeSpec) -> Result<VolumeStatus> {
        self.create_volume_with(spec, &PolicyChoice::default())
    }

    /// Creates a volume that has a policy.
    ///
    /// # Errors
    /// The same, and those of [`Pool::choose_policy`].
    pub fn create_volume_with(
        &self,
        spec: &VolumeSpec,
        policy: &PolicyChoice,
    ) -> Result<VolumeStatus> {
        let _changing = lock(&self.changing);
        let chosen = self.choose_policy(None, policy)?;
        self.make_volume(spec, |config, id| {
            let volumes = config.volumes.iter_mut();
            volumes
                .filter(|known| known.id == id)
                .for_each(|known| (known.policy, known.group) = chosen);
        })
    }

    /// The same, for a caller that holds the pool's lock. `note` changes other parts of the
    /// label in the same step; it gets the volume's number.
    pub(super) fn make_volume(
        &self,
        spec: &VolumeSpec,
        note: impl FnOnce(&mut PoolConfig, u32),
    ) -> Result<VolumeStatus> {
        plan::check_name("volume", &spec.name)?;
        check_size(spec.size)?;
        if ![512, 4096].contains(&spec.lba_size) {
            return error(
                ErrorCode::Invalid,
                format!(
                    "a logical block has 512 or 4096 bytes, not {}",
                    spec.lba_size
                ),
            );
        }
        if self.find_volume(&spec.name).is_ok() {
            return error(
                ErrorCode::Exists,
                format!(
                    "pool {} already has a volume '{}': choose another name",
                    self.name, spec.name
                ),
            );
        }
        let mut wanted = VolumeConfig {
            id: 0,
            name: spec.name.clone(),
            size: spec.size,
            lba_size: spec.lba_size,
            thick: spec.thick,
            deleting: false,
            live: 0,
            next: 0,
            quota: spec.quota,
            reservation: spec.reservation,
            knobs: KnobsConfig::default(),
            targets: format::TargetsConfig::default(),
            policy: 0,
            group: 0,
        };
        limits::check(&mut wanted)?;
        let allowance = self.new_allowance(&wanted)?;
        let made = self.update_soon(|config| {
            let volume = VolumeConfig {
                id: config.next_volume,
                ..wanted.clone()
            };
            config.next_volume += 1;
            config.volumes.push(volume.clone());
            note(config, volume.id);
            Ok(volume)
        });
        let volume = match made {
            Ok(volume) => volume,
            Err(failed) => {
                if let Some(allowance) = allowance {
                    allowance.owe(-promise(&wanted), &self.shared.space);
                }
                return Err(failed);
            }
        };
        let id = volume.id;
        ask_all(&self.shards, move |shard| async move {
            shard.set_volume(id, id)
        })?;
        if let Some(allowance) = allowance {
            self.begin_to_count(id, allowance)?;
        }
        self.tell_tenants()?;
        lock(&self.devices).insert(id, self.device(&volume));
        Ok(self.volume_status(&volume, &[]))
    }

    /// The volume, or with `volume@snapshot` that snapshot of it, for a front end.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn open_volume(&self, name: &str) -> Result<Arc<VolumeDevice>> {
        if let Some((volume, snapshot)) = name.split_once('@') {
            return self.open_snapshot(volume, snapshot);
        }
        let volume = self.find_volume(name)?;
        match lock(&self.devices).get(&volume.id) {
            Some(device) => Ok(device.clone()),
            None => error(ErrorCode::Busy, format!("volume {name} is being deleted")),
        }
    }

    /// Changes a volume's size.
    ///
    /// # Errors
    /// `Refused` when it would shrink without `shrink`, `NoSpace` when a thick one cannot be
    /// reserved the rest.
    pub fn resize_volume(&self, name: &str, size: u64, shrink: bool) -> Result<VolumeStatus> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(name)?;
        let device = self.open_volume(name)?;
        check_size(size)?;
        if size < volume.size && !shrink {
            return error(
                ErrorCode::Refused,
                format!(
                    "volume {name} would shrink from {} to {} and lose the data beyond: use --shrink to confirm",
                    format_bytes(volume.size),
                    format_bytes(size)
                ),
            );
        }
        let mut after = volume.clone();
        after.size = size;
        limits::check(&mut after)?;
        self.check_settings(&volume, &after)?;
        if size < volume.size {
            device.resize(size);
            self.trim_beyond(&volume, size)?;
        }
        if promise(&after) != promise(&volume) {
            self.set_limits(&volume, &after)?;
        } else {
            self.update_soon(|config| {
                let volumes = config.volumes.iter_mut();
                volumes
                    .filter(|known| known.id == volume.id)
                    .for_each(|known| known.size = size);
                Ok(())
            })?;
        }
        device.resize(size);
        let shards = self.shard_statuses()?;
        Ok(self.volume_status(&self.find_volume(name)?, &shards))
    }

    fn trim_beyond(&self, volume: &VolumeConfig, size: u64) -> Result<()> {
        let (id, old) = (volume.id, volume.size);
        let first_whole = size.div_ceil(CHUNK as u64) as u32;
        let last = old.div_ceil(CHUNK as u64) as u32;
        let rest = (u64::from(first_whole) * CHUNK as u64).min(old) - size;
        let root = self.config().root(volume.live());
        let holder =
            crate::device::shard_of_chunk(root, (size / CHUNK as u64) as u32, self.shards.len());
        if rest > 0 {
            let trimmed = self.shards[holder]
                .ask(move |shard| async move { shard.trim_range(id, size, rest).await });
            let trimmed = reactor::control::receive(trimmed)
                .map_err(|_| EngineError::new(ErrorCode::Busy, "the pool is closing"))?;
            trimmed.map_err(|failed| EngineError::new(ErrorCode::Io, failed.to_string()))?;
        }
        try_all(
            &self.shards,
            "the space beyond the new end of the volume cannot be freed",
            move |shard| async move {
                shard.trim_chunks(id, first_whole..last).await?;
                // Truncated data must not reappear when the volume grows again.
                shard.barrier().await
            },
        )
    }

    /// Closes a volume for its front ends and frees its space in the background.
    ///
    /// # Errors
    /// When there is no such volume.
    pub fn delete_volume(self: &Arc<Self>, name: &str) -> Result<u64> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(name)?;
        if self.jobs.is_running("delete", &self.name, name) {
            return Err(crate::control::busy("the volume is already being deleted"));
        }
        self.refuse_named(&volume)?;
        if volume.next != 0 {
            self.settle_announced(&volume)?;
        }
        let volume = self.find_volume(name)?;
        self.update_soon(|config| {
            config
                .volumes
                .iter_mut()
                .filter(|known| known.id == volume.id)
                .for_each(|known| known.deleting = true);
            config.unschedule(volume.id, None);
            config.receiving.retain(|known| known.volume != volume.id);
            config
                .reservations
                .retain(|known| known.volume != volume.id);
            Ok(())
        })?;
        self.end_count(&volume)?;
        self.tell_tenants()?;
        let device = lock(&self.devices).remove(&volume.id);
        if let Some(device) = device {
            device.end();
            if !wait_for(|| device.in_flight() == 0) {
                let text = format!(
                    "volume {name} will be deleted when its pool is next opened: requests to it have not completed, \
                     since a drive is not responding"
                );
                return error(ErrorCode::Busy, text);
            }
        }
        self.start_deletion(volume)
    }

    /// A volume with snapshots is not deleted by accident.
    fn refuse_named(&self, volume: &VolumeConfig) -> Result<()> {
        let config = lock(&self.config);
        let mine = config
            .snapshots
            .iter()
            .filter(|known| known.volume == volume.id);
        let names: Vec<&str> = mine.map(|known| known.name.as_str()).collect();
        let Some(first) = names.first() else {
            return Ok(());
        };
        error(
            ErrorCode::Refused,
            format!(
                "volume {} has {} snapshots ({first} is the first): delete them first, see `convect snapshot list`",
                volume.name,
                names.len()
            ),
        )
    }

    pub(super) fn start_deletion(self: &Arc<Self>, volume: VolumeConfig) -> Result<u64> {
        let (id, layer) = (volume.id, volume.live());
        ask_all(&self.shards, move |shard| async move {
            shard.end_volume(layer);
            shard.set_volume(id, layer);
        })?;
        let shards = self.shard_statuses()?;
        let mapped: u64 = shards
            .iter()
            .filter_map(|shard| shard.volumes.get(&layer))
            .map(|totals| totals.counts.mapped())
            .sum();
        let pool = self.clone();
        self.start_job(
            ("delete", &volume.name.clone()),
            (0, mapped * BLOCK as u64),
            move |progress| pool.free_volume(&volume, &progress),
        )
    }

    fn free_volume(
        self: &Arc<Self>,
        volume: &VolumeConfig,
        progress: &Arc<Progress>,
    ) -> Result<bool> {
        let (id, mut layer) = (volume.id, volume.live());
        let changing = loop {
            self.free_content(layer, progress)?;
            let changing = lock(&self.changing);
            let config = self.config();
            let known = config.volumes.iter().find(|known| known.id == id);
            // Snapshots that were deleted before may have been merged meanwhile: then the volume has
            // another layer.
            match known.map(VolumeConfig::live) {
                Some(live) if live != layer => layer = live,
                _ => break changing,
            }
        };
        self.update_soon(|config| {
            config.volumes.retain(|known| known.id != id);
            config.reaped(format::Reap::Free(layer));
            Ok(())
        })?;
        self.tell_holders()?;
        self.shared.space.full.store(false, Ordering::Relaxed);
        drop(changing);
        // A clone's parent layers may be unreferenced now.
        self.start_reaping()?;
        Ok(true)
    }

    /// Resumes jobs that were in progress when the pool was closed.
    pub(super) fn resume_jobs(self: &Arc<Self>, config: &format::PoolConfig) {
        self.resume_scrub();
        if let Err(failed) = self.start_reaping() {
            tracing::warn!(error = %failed, "snapshots' space cannot be reclaimed");
        }
        for volume in config.volumes.iter().filter(|volume| volume.deleting) {
            if let Err(failed) = self.start_deletion(volume.clone()) {
                tracing::warn!(volume = volume.name, error = %failed, "a deletion cannot be resumed");
            }
        }
        for vdrive in config.vdrives.iter().filter(|vdrive| vdrive.evacuating) {
            if let Err(failed) = self.start_evacuation(vdrive.id) {
                tracing::warn!(vdrive = vdrive.id, error = %failed, "an evacuation cannot be resumed");
            }
        }
        self.resume_resyncs();
        self.forget_paused();
    }
}
