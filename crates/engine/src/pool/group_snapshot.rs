//! Taking snapshots (docs/snapshots.md).
//!
//! Hosts wait from the moment at which the first shard quiesces its volumes until the last one has switched them. So
//! all of it is one task on the loop of the labels: no other thread must be scheduled in between.

use super::labels::on_loop;
use super::shards::{all, ask_all, code_of};
use super::snapshots::Clones;
use super::{Pool, Result, error, lock, plan};
use crate::control::types::{ErrorCode, SnapshotStatus};
use crate::shard::Ready;
use format::{LayerConfig, PoolConfig, SnapshotConfig, VolumeConfig};
use reactor::Handle;
use std::collections::BTreeSet;
use std::sync::Arc;
use units::mutation::{Mutation, is_on};

/// Most volumes of one group.
pub(super) const GROUP_MAX: usize = 256;

/// Volumes, and the layers that are to take their writes.
type Switches = Vec<(u32, u32)>;

/// A snapshot to take.
pub(super) struct NewSnapshot {
    pub name: String,
    /// The schedule that takes it, if any.
    pub schedule: String,
    /// Seconds since 1970.
    pub created_s: u64,
}

impl Pool {
    /// Takes an atomic snapshot of several volumes, each with the same name: what was acknowledged
    /// before is in it, later requests are not. `now_s`: seconds since 1970.
    ///
    /// # Errors
    /// `NotFound`, `Exists` or `Refused`, and nothing is changed; a drive's error, and then there
    /// is no snapshot.
    pub fn snapshot(
        self: &Arc<Self>,
        volumes: &[String],
        name: &str,
        now_s: u64,
    ) -> Result<Vec<SnapshotStatus>> {
        let _changing = lock(&self.changing);
        let new = NewSnapshot {
            name: name.to_owned(),
            schedule: String::new(),
            created_s: now_s,
        };
        self.take(volumes, new, |_| {})
    }

    /// The same, for a caller that holds the pool's lock. `note` changes other parts of the label
    /// in the same step.
    pub(super) fn take(
        self: &Arc<Self>,
        volumes: &[String],
        new: NewSnapshot,
        note: impl FnOnce(&mut PoolConfig) + Send + 'static,
    ) -> Result<Vec<SnapshotStatus>> {
        plan::check_name("snapshot", &new.name)?;
        if volumes.is_empty() || volumes.len() > GROUP_MAX {
            let count = volumes.len();
            let text = format!("a snapshot covers 1 to {GROUP_MAX} volumes, not {count}");
            return error(ErrorCode::Invalid, text);
        }
        let mut of: Vec<VolumeConfig> = Vec::new();
        for volume in volumes {
            let volume = self.changeable(volume)?;
            self.check_new_snapshot(&volume, &new.name)?;
            if of.iter().any(|known| known.id == volume.id) {
                let text = format!("volume {} is given twice", volume.name);
                return error(ErrorCode::Invalid, text);
            }
            of.push(volume);
        }
        let name = new.name.clone();
        let ids: BTreeSet<u32> = of.iter().map(|volume| volume.id).collect();
        let pool = self.clone();
        on_loop(&self.remote, move |handle| async move {
            let switches = pool.quiesce(&handle, &of).await?;
            let durable = pool.switch_layers(switches).await?;
            pool.name_snapshot(&handle, (&of, new), durable, note).await
        })??;
        let config = self.config();
        let taken = config.snapshots.iter();
        let taken =
            taken.filter(|snapshot| snapshot.name == name && ids.contains(&snapshot.volume));
        let none = Clones::new();
        let status = |known| self.snapshot_status(&config, known, &none, &[]);
        Ok(taken.map(status).collect())
    }

    /// Quiesces volumes in all shards, which know their next active layers; labels list those.
    async fn quiesce(&self, handle: &Handle, of: &[VolumeConfig]) -> Result<Switches> {
        let mut ahead = BTreeSet::new();
        let mut known = of.iter().all(|volume| volume.next != 0);
        loop {
            let announce = |config: &mut PoolConfig| {
                let announce = |volume: &VolumeConfig| {
                    if ahead.contains(&volume.id) {
                        config.advance(volume.id);
                    }
                    Some((volume.id, config.announce(volume.id)?))
                };
                Ok(of.iter().filter_map(announce).collect())
            };
            let switches: Switches = match known || is_on(Mutation::SnapshotUnreserved) {
                true => announce(&mut lock(&self.config))?,
                // They exist before anything is written to them.
                false => self.update_on_loop(handle, announce).await?,
            };
            ahead = self.quiesce_if_ready(&switches).await?;
            if ahead.is_empty() {
                return Ok(switches);
            }
            known = false;
        }
    }

    /// Quiesces the volumes, unless some of the layers take writes already, since a snapshot could not be named:
    /// those volumes.
    async fn quiesce_if_ready(&self, switches: &Switches) -> Result<BTreeSet<u32>> {
        let told = self.layers_to_tell(switches.iter().map(|(_, layer)| *layer));
        let wanted = switches.clone();
        let answers = all(&self.shards, move |shard| {
            let (told, wanted) = (told.clone(), wanted.clone());
            async move { shard.quiesce_if_ready(&told, &wanted) }
        });
        let answers = answers.await?;
        if answers.iter().all(|answer| *answer == Ready::Quiesced) {
            return Ok(BTreeSet::new());
        }
        let volumes: Vec<u32> = switches.iter().map(|(volume, _)| *volume).collect();
        all(&self.shards, move |shard| {
            let volumes = volumes.clone();
            async move { shard.resume_volumes(volumes.into_iter()) }
        })
        .await?;
        // Writes after a snapshot need pages of their own: no snapshot is taken if there would soon be none left
        // for writes.
        if answers.contains(&Ready::Full) {
            let text = "the metadata region is nearly full, and writes after a snapshot need \
                        room there: delete snapshots, clones or volumes first";
            return error(ErrorCode::NoSpace, text);
        }
        let ahead = answers.into_iter().filter_map(|answer| match answer {
            Ready::SwitchedAlready(volumes) => Some(volumes),
            _ => None,
        });
        Ok(ahead.flatten().collect())
    }

    /// Switches all shards to the volumes' new layers atomically, and makes earlier writes durable:
    /// the inner error says that it could not be.
    async fn switch_layers(&self, switches: Switches) -> Result<Result<()>> {
        let switch = move |shard: std::rc::Rc<crate::shard::Shard>| {
            let switches = switches.clone();
            async move {
                shard.switch_layers(&switches);
                shard.barrier().await
            }
        };
        let together = match is_on(Mutation::SnapshotUnheld) {
            true => 1,
            false => self.shards.len(),
        };
        let mut results = Vec::new();
        for shards in self.shards.chunks(together) {
            results.extend(all(shards, switch.clone()).await?);
        }
        let durable: std::result::Result<(), _> = results.into_iter().collect();
        Ok(durable.or_else(|failed| {
            let text = format!("the snapshot's data cannot be made durable: {failed}");
            error(code_of(&failed), text)
        }))
    }

    /// Records in the label that the new layers belong to the volumes, and, if all is `durable`, the snapshot.
    async fn name_snapshot(
        &self,
        handle: &Handle,
        (of, new): (&[VolumeConfig], NewSnapshot),
        durable: Result<()>,
        note: impl FnOnce(&mut PoolConfig),
    ) -> Result<()> {
        let named = self.update_on_loop(handle, |config| {
            for volume in of {
                let Some(layer) = config.advance(volume.id) else {
                    continue;
                };
                if durable.is_ok() {
                    config.snapshots.push(SnapshotConfig {
                        name: new.name.clone(),
                        volume: volume.id,
                        layer,
                        size: volume.size,
                        created_s: new.created_s,
                        held: false,
                        schedule: new.schedule.clone(),
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
        let named = named.await;
        durable.and(named)
    }

    /// The volumes whose announced layers already take writes.
    fn written_ahead(&self, of: &[VolumeConfig]) -> Result<BTreeSet<u32>> {
        let announced: Switches = of
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

    /// Withdraws the announced layer of a volume that is to be deleted. If it has writes, it is
    /// the active one.
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

    /// Informs the shards of layers and their parents.
    pub(super) fn tell_layers(&self, layers: impl Iterator<Item = u32>) -> Result<()> {
        let told = self.layers_to_tell(layers);
        ask_all(&self.shards, move |shard| {
            let told = told.clone();
            async move { shard.set_layers(&told) }
        })
        .map(drop)
    }

    fn layers_to_tell(&self, layers: impl Iterator<Item = u32>) -> Vec<LayerConfig> {
        let config = lock(&self.config);
        let mut told = Vec::new();
        for id in layers {
            let layer = config.layer(id).copied();
            let parent = layer.and_then(|layer| config.layer(layer.parent).copied());
            told.extend(parent.into_iter().chain(layer));
        }
        told
    }
}
