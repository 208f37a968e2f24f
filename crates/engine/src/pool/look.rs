//! A consistent status of a pool and its volumes, for which each shard is queried once.

use super::allowances::has;
use super::shards::ask_all;
use super::{Pool, Result, lock};
use crate::control::look::{PoolLook, VolumeLook};
use crate::control::spread::Spreads;
use format::VolumeConfig;
use std::sync::Arc;

impl Pool {
    /// Collects all counters.
    ///
    /// # Errors
    /// When the pool is closing.
    pub fn look(&self) -> Result<PoolLook> {
        let config = self.config();
        let is_kept = |name: &str| config.exports.iter().any(|export| export.name == name);
        let kept = Arc::new(lock(&self.exported).kept(is_kept));
        let known = kept.clone();
        let told = ask_all(&self.shards, move |shard| {
            let known = known.clone();
            async move { (shard.status(), (shard.spreads(), shard.exports(&known))) }
        })?;
        let (shards, did): (Vec<_>, Vec<_>) = told.into_iter().unzip();
        let (spreads, by_export): (Vec<_>, Vec<_>) = did.into_iter().unzip();
        let exports = {
            let mut exported = lock(&self.exported);
            exported.forget(&kept);
            exported.looks(&by_export)
        };
        let has = has(&config.holders(), &shards);
        let look = |volume: &VolumeConfig| {
            let mut spread = Spreads::default();
            let parts = spreads.iter().filter_map(|of| of.get(&volume.live()));
            parts.for_each(|part| spread.add(part));
            let has = has.get(&volume.id).copied().unwrap_or_default();
            VolumeLook {
                status: self.status_of(volume, has, &shards),
                counters: self.volume_counters_by(volume, &shards),
                spread: spread.io,
                sources: spread.sources,
            }
        };
        let online = config.volumes.iter().filter(|volume| !volume.deleting);
        Ok(PoolLook {
            status: self.status_by(&shards, &config),
            counters: self.counters_by(&shards),
            snapshots: config.snapshots.len(),
            volumes: online.map(look).collect(),
            groups: self.qos_groups(),
            exports,
        })
    }
}
