//! Snapshots and clones of a pool's volumes (docs/snapshots.md).

use super::shards::{ask_all, code_of};
use super::{Pool, Result, error, lock, plan};
use crate::control::types::{EngineError, ErrorCode, SnapshotStatus, VolumeStatus};
use crate::control::wait_for;
use crate::device::VolumeDevice;
use format::{KnobsConfig, PoolConfig, SnapshotConfig, VolumeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::BLOCK;

/// Numbers from here on are not assigned to volumes: shards use them for opened snapshots.
const FIRST_READER: u32 = format::NUMBERS_MAX;

impl Pool {
    /// Finds a volume that can be snapshotted, rolled back or cloned.
    pub(super) fn changeable(&self, name: &str) -> Result<VolumeConfig> {
        let volume = self.find_volume(name)?;
        if volume.deleting {
            return error(ErrorCode::Busy, format!("volume {name} is being deleted"));
        }
        if volume.thick {
            let text = format!(
                "volume {name} is thick: its space is reserved once, and a snapshot would need it \
                 twice; copy it to a thin volume"
            );
            return error(ErrorCode::Refused, text);
        }
        Ok(volume)
    }

    pub(super) fn check_new_snapshot(&self, volume: &VolumeConfig, name: &str) -> Result<()> {
        if self.find_snapshot(volume, name).is_ok() {
            let text = format!(
                "volume {} already has a snapshot '{name}': choose another name",
                volume.name
            );
            return error(ErrorCode::Exists, text);
        }
        Ok(())
    }

    pub(super) fn find_snapshot(
        &self,
        volume: &VolumeConfig,
        name: &str,
    ) -> Result<SnapshotConfig> {
        let config = lock(&self.config);
        let mut of = config
            .snapshots
            .iter()
            .filter(|known| known.volume == volume.id);
        match of.find(|known| known.name == name) {
            Some(found) => Ok(found.clone()),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "volume {} has no snapshot '{name}': see `convect snapshot list`",
                    volume.name
                ),
            ),
        }
    }

    /// Tells the shards of all layers: recovery needs their parents.
    pub(super) fn tell_all_layers(&self) -> Result<()> {
        let layers = Arc::new(self.config().layers);
        ask_all(&self.shards, move |shard| {
            let layers = layers.clone();
            async move { shard.set_layers(&layers) }
        })
        .map(drop)
    }

    /// The pool's snapshots, or those of one volume, in the order in which they were taken.
    ///
    /// # Errors
    /// `NotFound`, or when the pool is closing.
    pub fn snapshots(&self, volume: Option<&str>) -> Result<Vec<SnapshotStatus>> {
        let only = volume.map(|name| self.find_volume(name)).transpose()?;
        let shards = self.shard_statuses()?;
        let config = self.config();
        let mut found: Vec<_> = config.snapshots.iter().collect();
        found.retain(|known| only.as_ref().is_none_or(|only| only.id == known.volume));
        // In the order of their creation, independent of the clock: the label has that order.
        found.sort_by_key(|known| known.volume);
        let clones = clones(&config);
        let status = |known| self.snapshot_status(&config, known, &clones, &shards);
        Ok(found.into_iter().map(status).collect())
    }

    /// Bytes unique to a snapshot; `None` if `go_on` ended the search.
    ///
    /// # Errors
    /// `NotFound`, a drive's error, or when the pool is closing.
    pub fn unique(
        &self,
        volume: &str,
        name: &str,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<u64>> {
        let layer = self.find_snapshot(&self.find_volume(volume)?, name)?.layer;
        let owners = lock(&self.config).owners(layer);
        let mut blocks = 0;
        for owner in owners.into_iter().map(Arc::new) {
            for shard in &self.shards {
                let mut next = Some(0);
                while let Some(from) = next {
                    if !go_on() {
                        return Ok(None);
                    }
                    let owner = owner.clone();
                    let answers = ask_all(std::slice::from_ref(shard), move |shard| {
                        let owner = owner.clone();
                        async move { shard.alone(&owner, from).await }
                    })?;
                    for answer in answers {
                        let (found, at) = answer.map_err(|failed| {
                            EngineError::new(code_of(&failed), failed.to_string())
                        })?;
                        blocks += found;
                        next = at;
                    }
                }
            }
        }
        Ok(Some(blocks * BLOCK as u64))
    }

    pub(super) fn snapshot_status(
        &self,
        config: &PoolConfig,
        snapshot: &SnapshotConfig,
        clones: &Clones,
        shards: &[crate::shard::ShardStatus],
    ) -> SnapshotStatus {
        let volume = config
            .volumes
            .iter()
            .find(|volume| volume.id == snapshot.volume);
        let layers = shards
            .iter()
            .filter_map(|shard| shard.volumes.get(&snapshot.layer));
        let mapped: u64 = layers.map(|totals| totals.counts.mapped()).sum();
        SnapshotStatus {
            name: snapshot.name.clone(),
            volume: volume.map(|volume| volume.name.clone()).unwrap_or_default(),
            pool: self.name.clone(),
            size: snapshot.size,
            stored: mapped * BLOCK as u64,
            created_s: snapshot.created_s,
            held: snapshot.held,
            clones: clones.get(&snapshot.layer).cloned().unwrap_or_default(),
            schedule: snapshot.schedule.clone(),
            identity: self.identity(config, snapshot),
        }
    }

    /// Changes a snapshot's name, or whether it may be deleted. A renamed snapshot is removed from its
    /// schedule.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, or when no drive takes the label.
    pub fn change_snapshot(
        &self,
        volume: &str,
        name: &str,
        new_name: Option<&str>,
        held: Option<bool>,
    ) -> Result<SnapshotStatus> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(volume)?;
        self.find_snapshot(&volume, name)?;
        if let Some(new) = new_name {
            plan::check_name("snapshot", new)?;
            self.check_new_snapshot(&volume, new)?;
        }
        let mine = |known: &SnapshotConfig| known.volume == volume.id && known.name == name;
        self.update_soon(|config| {
            for known in config.snapshots.iter_mut().filter(|known| mine(known)) {
                known.held = held.unwrap_or(known.held);
                if let Some(new) = new_name {
                    new.clone_into(&mut known.name);
                    // A user who renames it wants to keep it.
                    known.schedule.clear();
                }
            }
            Ok(())
        })?;
        let snapshot = self.find_snapshot(&volume, new_name.unwrap_or(name))?;
        let config = self.config();
        Ok(self.snapshot_status(
            &config,
            &snapshot,
            &clones(&config),
            &self.shard_statuses()?,
        ))
    }

    /// Deletes snapshots of a volume. Their unique space is freed in the background.
    ///
    /// # Errors
    /// `NotFound` or `Refused` (held, or with clones, which are named), and all are still there.
    pub fn delete_snapshots(self: &Arc<Self>, volume: &str, names: &[String]) -> Result<()> {
        let changing = lock(&self.changing);
        let volume = self.find_volume(volume)?;
        let clones = clones(&self.config());
        let mut gone = Vec::new();
        for name in names {
            let snapshot = self.find_snapshot(&volume, name)?;
            if snapshot.held {
                let text = format!(
                    "snapshot {name} of volume {} is held: release it first",
                    volume.name
                );
                return error(ErrorCode::Refused, text);
            }
            if let Some(clones) = clones.get(&snapshot.layer) {
                let text = format!(
                    "snapshot {name} of volume {} has clones: {}; delete them first",
                    volume.name,
                    clones.join(", ")
                );
                return error(ErrorCode::Refused, text);
            }
            gone.push(snapshot.layer);
        }
        self.update_soon(|config| {
            config
                .snapshots
                .retain(|known| known.volume != volume.id || !names.contains(&known.name));
            Ok(())
        })?;
        self.tell_holders()?;
        for layer in gone {
            self.close_snapshot(layer)?;
        }
        drop(changing);
        self.start_reaping()
    }

    /// Opens a snapshot for a front end, read-only.
    ///
    /// # Errors
    /// `NotFound`, or when the pool is closing.
    pub fn open_snapshot(&self, volume: &str, name: &str) -> Result<Arc<VolumeDevice>> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(volume)?;
        let snapshot = self.find_snapshot(&volume, name)?;
        let layer = snapshot.layer;
        let known = lock(&self.readers).0.get(&layer).copied();
        let device = known.and_then(|id| lock(&self.devices).get(&id).cloned());
        if let Some(device) = device {
            return Ok(device);
        }
        let id = {
            let mut readers = lock(&self.readers);
            readers.1 += 1;
            let id = FIRST_READER + readers.1;
            readers.0.insert(layer, id);
            id
        };
        ask_all(&self.shards, move |shard| async move {
            shard.set_reader(id, Some(layer))
        })?;
        let found = self.config().layer(layer).copied();
        let (root, epoch) = found.map_or((layer, layer), |found| (found.root, found.epoch));
        let device = self.make_device((id, root), snapshot.size, &volume, Some(epoch));
        lock(&self.devices).insert(id, device.clone());
        Ok(device)
    }

    /// Closes a snapshot for its front ends.
    fn close_snapshot(&self, layer: u32) -> Result<()> {
        let Some(id) = lock(&self.readers).0.remove(&layer) else {
            return Ok(());
        };
        let device = lock(&self.devices).remove(&id);
        if let Some(device) = device {
            device.end();
            if !wait_for(|| device.in_flight() == 0) {
                // It is unchanged, so that this can be retried.
                lock(&self.devices).insert(id, device);
                lock(&self.readers).0.insert(layer, id);
                let text = "requests to the snapshot have not completed, since a drive is not responding: try again later";
                return error(ErrorCode::Busy, text);
            }
        }
        ask_all(&self.shards, move |shard| async move {
            shard.set_reader(id, None)
        })
        .map(drop)
    }

    /// Creates a clone of a snapshot, which shares its blocks.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, or when no drive takes the label.
    pub fn clone_snapshot(&self, volume: &str, name: &str, clone: &str) -> Result<VolumeStatus> {
        let _changing = lock(&self.changing);
        plan::check_name("volume", clone)?;
        let origin = self.find_volume(volume)?;
        let snapshot = self.find_snapshot(&origin, name)?;
        if self.find_volume(clone).is_ok() {
            let text = format!(
                "pool {} already has a volume '{clone}': choose another name",
                self.name
            );
            return error(ErrorCode::Exists, text);
        }
        let made = self.update_soon(|config| {
            let volume = VolumeConfig {
                id: config.add_layer(snapshot.layer),
                name: clone.to_owned(),
                size: snapshot.size,
                lba_size: origin.lba_size,
                thick: false,
                deleting: false,
                live: 0,
                next: 0,
                quota: 0,
                reservation: 0,
                knobs: KnobsConfig::default(),
                targets: format::TargetsConfig::default(),
                policy: origin.policy,
                group: origin.group,
            };
            config.volumes.push(volume.clone());
            Ok(volume)
        })?;
        self.tell_layers(std::iter::once(made.id))?;
        self.tell_tenants()?;
        lock(&self.devices).insert(made.id, self.device(&made));
        Ok(self.volume_status(&made, &[]))
    }

    /// Rolls a volume back to a snapshot. Later writes are lost, unless
    /// another snapshot has it.
    ///
    /// # Errors
    /// `NotFound`, or a drive's error: then the volume is unchanged.
    pub fn roll_back(self: &Arc<Self>, volume: &str, name: &str) -> Result<VolumeStatus> {
        let changing = lock(&self.changing);
        let volume = self.changeable(volume)?;
        let snapshot = self.find_snapshot(&volume, name)?;
        let quiesced = vec![volume.id];
        let first = quiesced.clone();
        ask_all(&self.shards, move |shard| {
            let volumes = first.clone();
            async move { shard.quiesce_volumes(&volumes) }
        })?;
        // Writes from here on go to the new layer, or fail.
        let layer = self.update_soon(|config| {
            let layer = config.add_layer(snapshot.layer);
            for known in config
                .volumes
                .iter_mut()
                .filter(|known| known.id == volume.id)
            {
                (known.live, known.next, known.size) = (layer, 0, snapshot.size);
            }
            config.announce(volume.id);
            // Received data of an unfinished snapshot is lost, too.
            config.receiving.retain(|known| known.volume != volume.id);
            Ok(layer)
        });
        let layer = match layer {
            Ok(layer) => layer,
            Err(failed) => {
                ask_all(&self.shards, move |shard| {
                    let quiesced = quiesced.clone();
                    async move { shard.resume_volumes(quiesced.into_iter()) }
                })?;
                return Err(failed);
            }
        };
        self.tell_layers(std::iter::once(layer))?;
        let switches = vec![(volume.id, layer)];
        ask_all(&self.shards, move |shard| {
            let switches = switches.clone();
            async move { shard.switch_layers(&switches) }
        })?;
        self.tell_holders()?;
        if let Some(device) = lock(&self.devices).get(&volume.id) {
            device.resize(snapshot.size);
        }
        drop(changing);
        self.start_reaping()?;
        let shards = self.shard_statuses()?;
        Ok(self.volume_status(&self.find_volume(&volume.name)?, &shards))
    }
}

/// Names of the clones of snapshots, by the snapshots' layers.
pub(super) type Clones = BTreeMap<u32, Vec<String>>;

/// A volume is a clone of the first snapshot of another volume that is met on the way down from its
/// active layer.
fn clones(config: &PoolConfig) -> Clones {
    let layers: BTreeMap<u32, u32> = config
        .layers
        .iter()
        .map(|layer| (layer.id, layer.parent))
        .collect();
    let named: BTreeMap<u32, u32> = config
        .snapshots
        .iter()
        .map(|known| (known.layer, known.volume))
        .collect();
    let mut found = Clones::new();
    for volume in config.volumes.iter().filter(|volume| !volume.deleting) {
        let mut at = volume.live();
        while let Some(parent) = layers.get(&at) {
            match named.get(&at) {
                Some(owner) if *owner != volume.id => {
                    found.entry(at).or_default().push(volume.name.clone());
                    break;
                }
                _ => at = *parent,
            }
        }
    }
    found
}
