//! Snapshots and clones of a pool's volumes (docs/snapshots.md).

use super::shards::{ask_all, code_of, try_all};
use super::{Pool, Result, error, lock, plan};
use crate::control::types::{EngineError, ErrorCode, SnapshotStatus, VolumeStatus};
use crate::control::wait_for;
use crate::device::VolumeDevice;
use crate::shard::Shard;
use format::{LayerConfig, PoolConfig, SnapshotConfig, VolumeConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use units::BLOCK;
use units::mutation::{Mutation, is_on};

/// Volumes of one group.
pub(super) const GROUP_MAX: usize = 256;
/// Numbers from here on are no volume's: shards know opened snapshots by them.
const FIRST_READER: u32 = 1 << 31;

impl Pool {
    /// Takes a snapshot of several volumes at one moment, each by the same name: what was answered
    /// before is in it, what is asked for later is not. `now_s`: seconds since 1970.
    ///
    /// # Errors
    /// `NotFound`, `Exists` or `Refused`, and nothing has happened; what a drive said, and then there
    /// is no snapshot.
    pub fn snapshot(
        self: &Arc<Self>,
        volumes: &[String],
        name: &str,
        now_s: u64,
    ) -> Result<Vec<SnapshotStatus>> {
        let _changing = lock(&self.changing);
        self.take(volumes, (name, ""), now_s, |_| {})
    }

    /// The same, by a caller that keeps others from changing the pool; for the schedule of a name,
    /// or for none. `note` changes what else the label says from then on.
    pub(super) fn take(
        &self,
        volumes: &[String],
        (name, schedule): (&str, &str),
        now_s: u64,
        note: impl FnOnce(&mut PoolConfig),
    ) -> Result<Vec<SnapshotStatus>> {
        plan::check_name("snapshot", name)?;
        if volumes.is_empty() || volumes.len() > GROUP_MAX {
            let count = volumes.len();
            let text = format!("a snapshot is of 1 to {GROUP_MAX} volumes, not {count}");
            return error(ErrorCode::Invalid, text);
        }
        let mut of: Vec<VolumeConfig> = Vec::new();
        for volume in volumes {
            let volume = self.changeable(volume)?;
            self.check_new_snapshot(&volume, name)?;
            if of.iter().any(|known| known.id == volume.id) {
                let text = format!("volume {} is named twice", volume.name);
                return error(ErrorCode::Invalid, text);
            }
            of.push(volume);
        }
        self.check_room_for_pages()?;
        let cuts = self.announced(&of)?;
        self.cut(&cuts)?;
        let durable = try_all(
            &self.shards,
            "what is in the snapshot cannot be made durable",
            |shard| async move { shard.barrier().await },
        );
        let named = self.update_soon(|config| {
            for volume in &of {
                let Some(layer) = config.advance(volume.id) else {
                    continue;
                };
                if durable.is_ok() {
                    config.snapshots.push(SnapshotConfig {
                        name: name.to_owned(),
                        volume: volume.id,
                        layer,
                        size: volume.size,
                        created_s: now_s,
                        held: false,
                        schedule: schedule.to_owned(),
                        origin: String::new(),
                    });
                }
                // The next snapshot needs one label instead of two.
                if !is_on(Mutation::SnapshotUnreserved) {
                    config.announce(volume.id);
                }
            }
            if durable.is_ok() {
                note(config);
            }
            Ok(())
        });
        durable.and(named)?;
        let config = self.config();
        let taken = config.snapshots.iter().filter(|snapshot| {
            snapshot.name == name && of.iter().any(|volume| volume.id == snapshot.volume)
        });
        let none = Clones::new();
        let status = |known| self.snapshot_status(&config, known, &none, &[]);
        Ok(taken.map(status).collect())
    }

    /// The layers that are to take the volumes' writes, with the volumes' numbers: labels tell of them, and
    /// shards know them.
    fn announced(&self, of: &[VolumeConfig]) -> Result<Vec<(u32, u32)>> {
        let written = self.written_ahead(of)?;
        let announce = |config: &mut PoolConfig| {
            let announce = |volume: &VolumeConfig| {
                if written.contains(&volume.id) {
                    config.advance(volume.id);
                }
                Some((volume.id, config.announce(volume.id)?))
            };
            Ok(of.iter().filter_map(announce).collect())
        };
        let known = of.iter().all(|volume| volume.next != 0) && written.is_empty();
        let cuts: Vec<(u32, u32)> = match known || is_on(Mutation::SnapshotUnreserved) {
            true => announce(&mut lock(&self.config))?,
            // They are there before anything is written to them.
            false => self.update_soon(announce)?,
        };
        self.tell_layers(cuts.iter().map(|(_, layer)| *layer))?;
        Ok(cuts)
    }

    /// Those of the volumes whose announced layers take writes already: a snapshot could not be named.
    fn written_ahead(&self, of: &[VolumeConfig]) -> Result<BTreeSet<u32>> {
        let announced: Vec<(u32, u32)> = of
            .iter()
            .filter(|volume| volume.next != 0)
            .map(|volume| (volume.id, volume.next))
            .collect();
        let ahead = ask_all(&self.shards, move |shard| {
            let announced = announced.clone();
            async move { shard.are_live(&announced) }
        })?;
        Ok(ahead.into_iter().flatten().collect())
    }

    /// Takes back what was announced for a volume, since it is to be deleted. When that has writes, it is
    /// the live one.
    pub(super) fn settle_announced(&self, volume: &VolumeConfig) -> Result<()> {
        let written = self.written_ahead(std::slice::from_ref(volume))?;
        let withdrawn = self.update_soon(|config| match written.is_empty() {
            true => Ok(config.withdraw(volume.id)),
            false => Ok(config.advance(volume.id).and(None)),
        })?;
        let Some(layer) = withdrawn else {
            return Ok(());
        };
        ask_all(&self.shards, move |shard| async move {
            shard.remove_layer(layer).await
        })
        .map(drop)
    }

    /// Has shards write to volumes' new layers, all from one moment on.
    fn cut(&self, cuts: &[(u32, u32)]) -> Result<()> {
        let new = cuts.to_vec();
        let cut = move |shard: Rc<Shard>| {
            let new = new.clone();
            async move { shard.cut(&new) }
        };
        if is_on(Mutation::SnapshotUnheld) {
            for shard in self.shards.chunks(1) {
                ask_all(shard, cut.clone())?;
            }
            return Ok(());
        }
        let held: Vec<u32> = cuts.iter().map(|(volume, _)| *volume).collect();
        ask_all(&self.shards, move |shard| {
            let held = held.clone();
            async move { shard.hold(&held) }
        })?;
        ask_all(&self.shards, cut).map(drop)
    }

    /// A volume that can be snapshotted, rolled back or cloned from.
    pub(super) fn changeable(&self, name: &str) -> Result<VolumeConfig> {
        let volume = self.find_volume(name)?;
        if volume.deleting {
            return error(ErrorCode::Busy, format!("volume {name} is being deleted"));
        }
        if volume.thick {
            let text = format!(
                "volume {name} is thick: its space is promised once, and a snapshot would need it \
                 twice; copy it to a thin volume"
            );
            return error(ErrorCode::Refused, text);
        }
        Ok(volume)
    }

    /// What is written after a snapshot needs pages of its own: none is taken when there would soon be
    /// none left for writes.
    fn check_room_for_pages(&self) -> Result<()> {
        let room = ask_all(&self.shards, |shard| async move {
            shard.has_room_for_snapshot()
        })?;
        if room.contains(&false) {
            let text = "the metadata region is nearly full, and what is written after a snapshot needs \
                        room there: delete snapshots, clones or volumes first";
            return error(ErrorCode::NoSpace, text);
        }
        Ok(())
    }

    fn check_new_snapshot(&self, volume: &VolumeConfig, name: &str) -> Result<()> {
        if self.find_snapshot(volume, name).is_ok() {
            let text = format!(
                "volume {} has a snapshot '{name}' already: choose another name",
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

    /// Tells the shards of all layers: recovery has to know what they stand on.
    pub(super) fn tell_all_layers(&self) -> Result<()> {
        let layers = Arc::new(self.config().layers);
        ask_all(&self.shards, move |shard| {
            let layers = layers.clone();
            async move { shard.set_layers(&layers) }
        })
        .map(drop)
    }

    /// Tells the shards of layers, and of those that they stand on.
    fn tell_layers(&self, layers: impl Iterator<Item = u32>) -> Result<()> {
        let config = self.config();
        let mut told: Vec<LayerConfig> = Vec::new();
        for id in layers {
            let layer = config.layer(id).copied();
            let parent = layer.and_then(|layer| config.layer(layer.parent).copied());
            told.extend(parent.into_iter().chain(layer));
        }
        ask_all(&self.shards, move |shard| {
            let told = told.clone();
            async move { shard.set_layers(&told) }
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
        // As they were taken, whatever the clock said: the label has them in that order.
        found.sort_by_key(|known| known.volume);
        let clones = clones(&config);
        let status = |known| self.snapshot_status(&config, known, &clones, &shards);
        Ok(found.into_iter().map(status).collect())
    }

    /// Bytes that a snapshot alone has; none when `go_on` ended the search.
    ///
    /// # Errors
    /// `NotFound`, what a drive said, or when the pool is closing.
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

    fn snapshot_status(
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

    /// Changes a snapshot's name, or whether it may be deleted. One that gets another name is no
    /// schedule's any more.
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
                    // Whoever gave it a name wants to keep it.
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

    /// Deletes snapshots of a volume. What they alone had is given back in the background.
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
        self.tell_allowances()?;
        for layer in gone {
            self.close_snapshot(layer)?;
        }
        drop(changing);
        self.start_reaping()
    }

    /// A snapshot, for a front end: it can be read.
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

    /// Ends a snapshot for its front ends.
    fn close_snapshot(&self, layer: u32) -> Result<()> {
        let Some(id) = lock(&self.readers).0.remove(&layer) else {
            return Ok(());
        };
        let device = lock(&self.devices).remove(&id);
        if let Some(device) = device {
            device.end();
            wait_for(|| device.in_flight() == 0);
        }
        ask_all(&self.shards, move |shard| async move {
            shard.set_reader(id, None)
        })
        .map(drop)
    }

    /// Makes a volume that begins as a snapshot is, and shares what both have.
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
                "pool {} has a volume '{clone}' already: choose another name",
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
            };
            config.volumes.push(volume.clone());
            Ok(volume)
        })?;
        self.tell_layers(std::iter::once(made.id))?;
        lock(&self.devices).insert(made.id, self.device(&made));
        Ok(self.volume_status(&made, &[]))
    }

    /// Makes a volume as it was when a snapshot was taken. What was written since is lost, unless
    /// another snapshot has it.
    ///
    /// # Errors
    /// `NotFound`, or what a drive said: then the volume is as it was.
    pub fn roll_back(self: &Arc<Self>, volume: &str, name: &str) -> Result<VolumeStatus> {
        let changing = lock(&self.changing);
        let volume = self.changeable(volume)?;
        let snapshot = self.find_snapshot(&volume, name)?;
        let held = vec![volume.id];
        let hold = held.clone();
        ask_all(&self.shards, move |shard| {
            let hold = hold.clone();
            async move { shard.hold(&hold) }
        })?;
        // Whatever is written from here on goes to the new layer, or not at all.
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
            // What was received and not named yet is lost with the rest.
            config.receiving.retain(|known| known.volume != volume.id);
            Ok(layer)
        });
        let layer = match layer {
            Ok(layer) => layer,
            Err(failed) => {
                ask_all(&self.shards, move |shard| {
                    let held = held.clone();
                    async move { shard.let_go(held.into_iter()) }
                })?;
                return Err(failed);
            }
        };
        self.tell_layers(std::iter::once(layer))?;
        let cut = vec![(volume.id, layer)];
        ask_all(&self.shards, move |shard| {
            let cut = cut.clone();
            async move { shard.cut(&cut) }
        })?;
        self.tell_allowances()?;
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
type Clones = BTreeMap<u32, Vec<String>>;

/// A volume is a clone of the first snapshot of another volume that is met on the way down from its
/// live layer.
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
