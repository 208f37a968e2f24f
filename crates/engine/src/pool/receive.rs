//! Volumes that are made as a snapshot of another pool is: what is known of how far they are is in
//! the labels (docs/stream.md). The data others write, as hosts do.

use super::group_snapshot::NewSnapshot;
use super::{Pool, Result, error, lock};
use crate::control::types::{
    EngineError, ErrorCode, ReceiveSpec, ReceiveStatus, SnapshotStatus, VolumeSpec,
};
use block::BlockDevice;
use format::{PoolConfig, ReceivingConfig, SnapshotConfig, VolumeConfig};
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{SnapshotId, format_bytes};

impl Pool {
    /// Identity of a snapshot's content, global and permanent.
    pub(super) fn identity(&self, config: &PoolConfig, snapshot: &SnapshotConfig) -> String {
        if !snapshot.origin.is_empty() {
            return snapshot.origin.clone();
        }
        let layer = config.layer(snapshot.layer);
        let id = SnapshotId {
            pool: self.id,
            epoch: layer.map_or(snapshot.layer, |layer| layer.epoch),
            created_s: snapshot.created_s,
        };
        id.to_string()
    }

    fn find_receiving(&self, volume: u32) -> Option<ReceivingConfig> {
        let config = lock(&self.config);
        let mut found = config.receiving.iter();
        found.find(|known| known.volume == volume).cloned()
    }

    /// Progress of a volume that is being received.
    pub(super) fn receiving(&self, volume: u32) -> Option<ReceiveStatus> {
        let known = self.find_receiving(volume)?;
        Some(ReceiveStatus {
            snapshot: known.snapshot,
            to: known.to,
            from: Some(known.from).filter(|from| !from.is_empty()),
            done: known.done,
        })
    }

    /// Progress of receiving a volume of this name; `None` also if it does not exist.
    pub fn volume_receiving(&self, name: &str) -> Option<ReceiveStatus> {
        let volume = {
            let config = lock(&self.config);
            let mut found = config.volumes.iter();
            found.find(|known| known.name == name)?.id
        };
        self.receiving(volume)
    }

    /// Begins to receive a snapshot, or resumes it: creates the volume, or checks that it equals the
    /// base snapshot. With `force` later writes are lost. Nothing else may write to
    /// the volume from here on until it has the snapshot. Returns the offset up to which it is
    /// complete, in bytes.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Invalid`, or `Refused` if the volume was written since; a drive's
    /// error.
    pub fn begin_receive(
        self: &Arc<Self>,
        name: &str,
        spec: &ReceiveSpec,
        force: bool,
    ) -> Result<u64> {
        let Ok(volume) = self.find_volume(name) else {
            return self.make_receiving(name, spec);
        };
        // The same as for a snapshot, which the volume will get.
        self.changeable(name)?;
        let done = match self.find_receiving(volume.id) {
            Some(known) if known.to == spec.to.to_string() && known.from == text(spec.from) => {
                self.check_start(name, spec, known.done)?;
                known.done
            }
            known => {
                self.check_start(name, spec, 0)?;
                self.check_unreceived(&volume, spec)?;
                self.make_as_before(&volume, spec, known.as_ref(), force)?;
                let _changing = lock(&self.changing);
                self.update_soon(|config| {
                    config.receiving.retain(|known| known.volume != volume.id);
                    config.receiving.push(entry(volume.id, spec));
                    Ok(())
                })?;
                0
            }
        };
        if self.find_volume(name)?.size != spec.size {
            self.resize_volume(name, spec.size, true)?;
        }
        Ok(done)
    }

    fn make_receiving(&self, name: &str, spec: &ReceiveSpec) -> Result<u64> {
        if spec.from.is_some() {
            return error(
                ErrorCode::NotFound,
                format!(
                    "pool {} has no volume '{name}', and this stream is incremental: it contains the changes since \
                     another snapshot: receive that one first",
                    self.name
                ),
            );
        }
        self.check_start(name, spec, 0)?;
        let volume = VolumeSpec {
            name: name.to_owned(),
            size: spec.size,
            lba_size: spec.lba_size,
            thick: false,
            quota: 0,
            reservation: 0,
        };
        let _changing = lock(&self.changing);
        super::plan::check_name("snapshot", &spec.snapshot)?;
        self.make_volume(&volume, |config, id| config.receiving.push(entry(id, spec)))?;
        Ok(0)
    }

    fn check_start(&self, name: &str, spec: &ReceiveSpec, done: u64) -> Result<()> {
        if spec.start <= done {
            return Ok(());
        }
        error(
            ErrorCode::Invalid,
            format!(
                "this stream resumes after {} bytes, of which volume {}/{name} has {done}: send it with \
                 the token that `convect receive --status {}/{name}` prints, or from the start",
                spec.start, self.name, self.name
            ),
        )
    }

    /// Refuses a snapshot that the volume already has.
    fn check_unreceived(&self, volume: &VolumeConfig, spec: &ReceiveSpec) -> Result<()> {
        super::plan::check_name("snapshot", &spec.snapshot)?;
        let config = self.config();
        let mut mine = config
            .snapshots
            .iter()
            .filter(|known| known.volume == volume.id);
        let to = spec.to.to_string();
        let same = |known: &&SnapshotConfig| {
            known.name == spec.snapshot || self.identity(&config, known) == to
        };
        match mine.find(same) {
            None => Ok(()),
            Some(known) if self.identity(&config, known) == to => error(
                ErrorCode::Exists,
                format!(
                    "volume {}/{} already has this snapshot, as {}: nothing to do",
                    self.name, volume.name, known.name
                ),
            ),
            Some(known) => error(
                ErrorCode::Exists,
                format!(
                    "volume {}/{} has another snapshot named '{}': rename that one",
                    self.name, volume.name, known.name
                ),
            ),
        }
    }

    /// Checks that a volume equals the base snapshot of a stream, or rolls it back to it.
    fn make_as_before(
        self: &Arc<Self>,
        volume: &VolumeConfig,
        spec: &ReceiveSpec,
        begun: Option<&ReceivingConfig>,
        force: bool,
    ) -> Result<()> {
        let name = &volume.name;
        let Some(from) = spec.from else {
            return error(
                ErrorCode::Exists,
                format!(
                    "pool {} already has a volume '{name}', and this stream is a full one: choose \
                     another name, or delete that volume",
                    self.name
                ),
            );
        };
        let (base, size) = self.find_identity(volume, from)?;
        if force {
            return match base.contains('@') {
                false => self.roll_back(name, &base).map(drop),
                true => error(
                    ErrorCode::Refused,
                    format!("volume {name} cannot be rolled back to {base}, another volume's"),
                ),
            };
        }
        if let Some(begun) = begun {
            return error(
                ErrorCode::Busy,
                format!(
                    "volume {}/{name} has partially received another snapshot, {}: resume that with the \
                     token that `convect receive --status {}/{name}` prints, or use --force to roll \
                     back to {base} first",
                    self.name, begun.snapshot, self.name
                ),
            );
        }
        // The truncated part is neither in a difference to the volume, nor in the stream.
        if volume.size < size {
            return error(
                ErrorCode::Refused,
                format!(
                    "volume {}/{name} was shrunk since {base}, from {} to {}: use --force to roll \
                     back to {base}",
                    self.name,
                    format_bytes(size),
                    format_bytes(volume.size)
                ),
            );
        }
        let mut start = 0;
        while !is_on(Mutation::ReceiveChanged) {
            let part = self.diff(name, Some(&base), None, start, 1)?;
            if let Some(range) = part.ranges.first() {
                return error(
                    ErrorCode::Refused,
                    format!(
                        "volume {}/{name} was written since {base}, first at {}: copy the changes elsewhere \
                         and use --force to roll back to {base}",
                        self.name,
                        format_bytes(range.offset)
                    ),
                );
            }
            match part.next {
                Some(next) => start = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The snapshot that a volume is based on and that has this content: NAME, or VOLUME@NAME; and its size in
    /// bytes.
    fn find_identity(&self, volume: &VolumeConfig, id: SnapshotId) -> Result<(String, u64)> {
        let device = self.open_volume(&volume.name)?;
        let config = self.config();
        let holding = |epoch: u32| {
            let mut of = config.snapshots.iter().filter(|known| {
                let layer = config.layer(known.layer);
                layer.is_some_and(|layer| layer.epoch == epoch)
            });
            of.find(|known| {
                self.identity(&config, known) == id.to_string() || is_on(Mutation::ReceiveAny)
            })
        };
        let bases = device.bases().into_iter();
        let mut found = bases.filter_map(|(name, epoch)| Some((name, holding(epoch)?.size)));
        match found.next() {
            Some(found) => Ok(found),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "volume {}/{} does not descend from the base snapshot of this stream: send from \
                     a snapshot that both have, or a full stream into a new volume",
                    self.name, volume.name
                ),
            ),
        }
    }

    /// Records durably that the first `done` bytes of a volume are complete.
    ///
    /// # Errors
    /// `NotFound`, or when no drive takes the label.
    pub fn mark_received(&self, name: &str, done: u64) -> Result<()> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(name)?;
        let known = self
            .find_receiving(volume.id)
            .ok_or_else(|| not_begun(name))?;
        if known.done >= done {
            return Ok(());
        }
        self.update_soon(|config| {
            let mut known = config.receiving.iter_mut();
            if let Some(known) = known.find(|known| known.volume == volume.id) {
                known.done = done;
            }
            Ok(())
        })
    }

    /// Takes the received snapshot. The label records in one step that it exists and that
    /// nothing is being received any longer.
    ///
    /// # Errors
    /// `NotFound`; as [`Pool::snapshot`], and there is no snapshot then.
    pub fn end_receive(self: &Arc<Self>, name: &str) -> Result<Vec<SnapshotStatus>> {
        let _changing = lock(&self.changing);
        let volume = self.find_volume(name)?;
        let known = self
            .find_receiving(volume.id)
            .ok_or_else(|| not_begun(name))?;
        let created_s = known.to.parse().map_or(0, |id: SnapshotId| id.created_s);
        let volumes = [name.to_owned()];
        let new = NewSnapshot {
            name: known.snapshot.clone(),
            schedule: String::new(),
            created_s,
        };
        self.take(&volumes, new, move |config| {
            let mine =
                |of: &&mut SnapshotConfig| of.volume == volume.id && of.name == known.snapshot;
            if let Some(taken) = config.snapshots.iter_mut().find(mine) {
                taken.origin.clone_from(&known.to);
            }
            if !is_on(Mutation::ReceiveLingers) {
                config.receiving.retain(|other| other.volume != volume.id);
            }
        })
    }
}

fn not_begun(name: &str) -> EngineError {
    let text = format!("volume {name} is no longer being received: it was rolled back");
    EngineError::new(ErrorCode::NotFound, text)
}

fn text(id: Option<SnapshotId>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

fn entry(volume: u32, spec: &ReceiveSpec) -> ReceivingConfig {
    ReceivingConfig {
        volume,
        snapshot: spec.snapshot.clone(),
        to: spec.to.to_string(),
        from: text(spec.from),
        done: 0,
    }
}
