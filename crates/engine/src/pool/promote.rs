//! Promoting a clone: it takes over the snapshots that it is based on. Only the label changes: it records the owner of each snapshot.

use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, Promotion};
use format::{PoolConfig, SnapshotConfig, VolumeConfig};
use std::collections::BTreeSet;
use units::mutation::{Mutation, is_on};

impl Pool {
    /// Swaps the roles of a clone and the volume that it was cloned from: the snapshot that it
    /// is based on, and those before it of the same volume, are its own from then on, and the volume
    /// that had them is a clone. Atomic by one label.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if it is not a clone; `Exists` if both have a snapshot of the same name;
    /// `Busy` when a snapshot that would move is exported; `Refused` when the clone would hold more
    /// than its quota, or the pool lacks the space for the other's reservation; or no drive takes the label. Nothing is changed then.
    pub fn promote(&self, clone: &str) -> Result<Promotion> {
        let _changing = lock(&self.changing);
        let volume = self.changeable(clone)?;
        let config = self.config();
        let moving = config.to_promote(&volume);
        let Some(from) = moving.first() else {
            let text = format!(
                "volume {clone} is not a clone: it has no other volume's snapshot as its origin; see `convect \
                 snapshot list`"
            );
            return error(ErrorCode::Invalid, text);
        };
        let of = config.volumes.iter().find(|known| known.id == from.volume);
        let parent = of.map_or_else(|| format!("#{}", from.volume), |of| of.name.clone());
        check_names(&config, &moving, &volume, &parent)?;
        check_exports(&config, &moving, &parent)?;
        let taken = match is_on(Mutation::PromoteNewest) {
            true => &moving[..1],
            false => &moving[..],
        };
        let layers: BTreeSet<u32> = taken.iter().map(|known| known.layer).collect();
        let take_over = |config: &mut PoolConfig| {
            let moving = config.snapshots.iter_mut();
            for known in moving.filter(|known| layers.contains(&known.layer)) {
                known.volume = volume.id;
            }
        };
        let mut after = config.clone();
        take_over(&mut after);
        let both: Vec<&VolumeConfig> = of.into_iter().chain([&volume]).collect();
        self.while_quiesced(&both, || {
            let claimed = self.claim_move(&both, &after)?;
            let saved = self.update_soon(|config| {
                take_over(config);
                Ok(())
            });
            let told = match is_on(Mutation::HoldersUntold) {
                true => saved,
                false => saved.and_then(|()| self.tell_holders()),
            };
            // Counted again by then.
            self.shared.space.take(-claimed);
            told
        })?;
        let names = moving.iter().rev().map(|known| known.name.clone());
        Ok(Promotion {
            parent,
            snapshots: names.collect(),
        })
    }
}

fn check_names(
    config: &PoolConfig,
    moving: &[&SnapshotConfig],
    volume: &VolumeConfig,
    parent: &str,
) -> Result<()> {
    let own = config.snapshots.iter();
    let own: BTreeSet<&str> = own
        .filter(|known| known.volume == volume.id)
        .map(|known| known.name.as_str())
        .collect();
    match moving
        .iter()
        .find(|known| own.contains(known.name.as_str()))
    {
        None => Ok(()),
        Some(twice) => error(
            ErrorCode::Exists,
            format!(
                "volumes {} and {parent} both have a snapshot '{}', and both would belong to one volume: \
                 rename one with `convect snapshot rename`",
                volume.name, twice.name
            ),
        ),
    }
}

/// Exports refer to a snapshot by name, which begins with the volume's.
fn check_exports(config: &PoolConfig, moving: &[&SnapshotConfig], parent: &str) -> Result<()> {
    for known in moving {
        let name = format!("{parent}@{}", known.name);
        if let Some(export) = config.exports.iter().find(|export| export.volume == name) {
            let text = format!(
                "snapshot {name} is exported as {export}, and would move to another volume: first delete \
                 the export with `convect export delete {export}`, and create it again afterwards",
                export = export.name
            );
            return error(ErrorCode::Busy, text);
        }
    }
    Ok(())
}
