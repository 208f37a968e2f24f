//! Live status for viewers: counters of pools and volumes, and maps.

use super::jobs::Jobs;
use super::status_cache::StatusCache;
use super::volumes::Volumes;
use crate::access::Access;
use crate::live::{LiveSnapshot, MapView, Picture, codes};
use crate::mapping::ToApi;
use api::v1::{LivePolicy, LivePool, LiveVolume};
use engine::{PoolLook, VolumeQos};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Source of live data.
pub struct LiveStatus {
    access: Arc<Access>,
    status: Arc<StatusCache>,
    jobs: Arc<Jobs>,
    volumes: Arc<Volumes>,
}

impl LiveStatus {
    pub(super) fn new(
        access: &Arc<Access>,
        status: &Arc<StatusCache>,
        jobs: &Arc<Jobs>,
        volumes: &Arc<Volumes>,
    ) -> Self {
        Self {
            access: Arc::clone(access),
            status: Arc::clone(status),
            jobs: Arc::clone(jobs),
            volumes: Arc::clone(volumes),
        }
    }

    /// The first sample after number `after`: its number, the time it took, and the state.
    pub fn next(&self, after: u64) -> (u64, Duration, LiveSnapshot) {
        let look = self.status.after(after);
        let began = Instant::now();
        let mut volumes: Vec<LiveVolume> = look.pools.iter().flat_map(live_volumes).collect();
        volumes.sort_by(|one, other| (&one.pool, &one.name).cmp(&(&other.pool, &other.name)));
        let pools = look.pools.iter().map(|pool| LivePool {
            counters: pool.counters.to_api(),
            name: pool.status.name.clone(),
            state: pool.status.state.clone(),
            used: pool.status.used,
            fast_dirty: pool.status.fast_dirty,
            fast_shadow: pool.status.fast_shadow,
            ram_bytes: pool.status.ram_bytes,
        });
        let seen = LiveSnapshot {
            at_ms: look.at_ms,
            changes: self.access.changes(),
            pools: pools.collect(),
            volumes,
            policies: look.pools.iter().flat_map(live_policies).collect(),
            jobs: self.jobs.recent(),
        };
        (look.number, look.took + began.elapsed(), seen)
    }

    /// Maps of volumes. Missing volumes are left out.
    pub fn maps(&self, views: &[MapView]) -> BTreeMap<MapView, Picture> {
        let look = |view: &MapView| {
            let MapView {
                pool,
                volume,
                cells,
                start,
                length,
            } = view;
            let map = self
                .volumes
                .map(pool, volume, Some(*cells), *start, *length)
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

/// Policies in use, by level and name.
fn live_policies(pool: &PoolLook) -> Vec<LivePolicy> {
    let mut policies = BTreeMap::<(u8, &str), LivePolicy>::new();
    let volumes = pool.volumes.iter().filter_map(|volume| {
        let qos = volume.status.qos.as_ref();
        qos.filter(|qos| qos.group.is_none()).map(|qos| (qos, 1))
    });
    let groups = pool.groups.iter();
    let groups = groups.filter_map(|group| Some((group.qos.as_ref()?, group.volumes.len() as u64)));
    for (qos, volumes) in volumes.chain(groups) {
        let VolumeQos { policy, .. } = qos;
        let key = (policy.level, policy.name.as_str());
        let of = policies.entry(key).or_insert_with(|| LivePolicy {
            pool: pool.status.name.clone(),
            name: policy.name.clone(),
            level: policy.level,
            volumes: 0,
            promised_iops: 0,
            did: [0; 5],
        });
        of.volumes += volumes;
        of.promised_iops += policy.min_iops;
        let did = [qos.operations, qos.held, qos.late, qos.windows, qos.met];
        of.did
            .iter_mut()
            .zip(did)
            .for_each(|(sum, more)| *sum += more);
    }
    policies.into_values().collect()
}

fn live_volumes(pool: &PoolLook) -> impl Iterator<Item = LiveVolume> {
    pool.volumes.iter().map(|volume| LiveVolume {
        pool: pool.status.name.clone(),
        name: volume.status.name.clone(),
        did: [
            volume.counters.reads,
            volume.counters.writes,
            volume.counters.read_bytes,
            volume.counters.write_bytes,
            volume.counters.read_ns,
            volume.counters.write_ns,
        ],
    })
}
