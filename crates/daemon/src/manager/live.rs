//! What viewers are told.

use super::core::Manager;
use crate::clock::since_1970;
use crate::live::{MapView, Picture, Seen, codes};
use api::v1::{LivePool, LiveVolume, Pool};
use std::collections::BTreeMap;

impl Manager {
    /// All that is told of now. A pool that is being closed is left out.
    pub fn live(&self) -> Seen {
        let pools = self.pool_list().map_or(Vec::new(), |pools| pools.items);
        let mut volumes: Vec<LiveVolume> = pools
            .iter()
            .flat_map(|pool| self.live_volumes(pool))
            .collect();
        volumes.sort_by(|one, other| (&one.pool, &one.name).cmp(&(&other.pool, &other.name)));
        let mut pools: Vec<LivePool> = pools
            .into_iter()
            .filter_map(|pool| {
                Some(LivePool {
                    counters: self.pool_counters(&pool.name).ok()?,
                    name: pool.name,
                    state: pool.state,
                    used: pool.used,
                    fast_dirty: pool.fast_dirty,
                    fast_shadow: pool.fast_shadow,
                    ram_bytes: pool.ram_bytes,
                })
            })
            .collect();
        pools.sort_by(|one, other| one.name.cmp(&other.name));
        Seen {
            at_ms: since_1970().as_millis() as u64,
            changes: self.access.changes(),
            pools,
            volumes,
            jobs: self.jobs_of_late(),
        }
    }

    fn live_volumes(&self, pool: &Pool) -> Vec<LiveVolume> {
        let counters = self.control.volumes_counters(&pool.name);
        let live = |(name, counters): (String, engine::IoCounters)| LiveVolume {
            pool: pool.name.clone(),
            name,
            did: [
                counters.reads,
                counters.writes,
                counters.read_bytes,
                counters.write_bytes,
                counters.read_ns,
                counters.write_ns,
            ],
        };
        counters.unwrap_or_default().into_iter().map(live).collect()
    }

    /// Where volumes lie. Those that are not there are left out.
    pub fn live_maps(&self, views: &[MapView]) -> BTreeMap<MapView, Picture> {
        let look = |view: &MapView| {
            let MapView {
                pool,
                volume,
                cells,
                start,
                length,
            } = view;
            let map = self
                .volume_map(pool, volume, Some(*cells), *start, *length)
                .ok()?;
            let rest = map.size.saturating_sub(map.start);
            let picture = Picture {
                size: map.size,
                start: map.start,
                length: length.map_or(rest, |length| length.min(rest)),
                codes: codes(&map.cells),
            };
            Some((view.clone(), picture))
        };
        views.iter().filter_map(look).collect()
    }
}
