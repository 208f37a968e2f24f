//! All that a pool tells of itself and its volumes, of one moment, for which each shard is asked once.

use super::allowances::has;
use super::shards::ask_all;
use super::{Pool, Result};
use crate::control::look::{PoolLook, VolumeLook};
use crate::control::spread::Spreads;
use format::VolumeConfig;

impl Pool {
    /// Looks at everything that counts.
    ///
    /// # Errors
    /// When the pool is closing.
    pub fn look(&self) -> Result<PoolLook> {
        let told = ask_all(&self.shards, |shard| async move {
            (shard.status(), shard.spreads())
        })?;
        let (shards, spreads): (Vec<_>, Vec<_>) = told.into_iter().unzip();
        let config = self.config();
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
        })
    }
}
