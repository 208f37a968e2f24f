//! Volumes: create, list, resize, change settings, delete, map.

use super::Result;
use super::exports::Exports;
use super::jobs::Jobs;
use super::promises::QosBottlenecks;
use super::registry::PoolRegistry;
use crate::control::PoolCalls;
use crate::mapping::{self, ToApi, ToEngine};
use crate::names::check_name;
use crate::{protection, qos};
use api::v1::{self, Problem};
use std::sync::Arc;

/// Default and maximum number of cells of a map.
const CELLS_DEFAULT: usize = 64;
const CELLS_MAX: usize = 65_536;

/// The volumes of open pools.
pub struct Volumes {
    registry: Arc<PoolRegistry>,
    exports: Arc<Exports>,
    jobs: Arc<Jobs>,
    bottlenecks: Arc<QosBottlenecks>,
}

impl Volumes {
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        exports: &Arc<Exports>,
        jobs: &Arc<Jobs>,
        bottlenecks: &Arc<QosBottlenecks>,
    ) -> Self {
        Self {
            registry: Arc::clone(registry),
            exports: Arc::clone(exports),
            jobs: Arc::clone(jobs),
            bottlenecks: Arc::clone(bottlenecks),
        }
    }

    /// Drive failures that the volumes of a pool survive; none if it was closed meanwhile.
    fn protection(&self, pool: &str) -> Option<v1::Protection> {
        let status = self.registry.pool_status(pool).ok()?;
        Some(protection::of_vdrives(&status.vdrives))
    }

    pub(super) fn shown(&self, status: engine::VolumeStatus) -> v1::Volume {
        let protection = self.protection(&status.pool);
        self.shown_with(status, protection)
    }

    fn shown_with(
        &self,
        status: engine::VolumeStatus,
        protection: Option<v1::Protection>,
    ) -> v1::Volume {
        let exports = self.exports.names_of(&status.pool, Some(&status.name));
        let (pool, name) = (status.pool.clone(), status.name.clone());
        let mut volume = mapping::volume(status, exports, protection);
        if let Some(qos) = &mut volume.qos {
            self.bottlenecks.tell(&pool, &name, qos);
        }
        volume
    }

    /// The volumes of one pool, or of all.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn list(&self, pool: Option<&str>) -> Result<v1::VolumeList> {
        let mut items = Vec::new();
        for pool in self.registry.one_or_all(pool)? {
            let volumes = self.registry.volume_list(&pool)?;
            let protection = self.protection(&pool);
            let shown = |volume| self.shown_with(volume, protection);
            items.extend(volumes.into_iter().map(shown));
        }
        Ok(v1::VolumeList { items })
    }

    /// A volume.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn show(&self, pool: &str, volume: &str) -> Result<v1::Volume> {
        let volumes = self.list(Some(pool))?.items;
        let found = volumes.into_iter().find(|known| known.name == volume);
        found.ok_or_else(|| {
            Problem::not_found(format!(
                "volume {volume} does not exist in pool {pool}: see `convect volume list {pool}`"
            ))
        })
    }

    /// Creates a volume.
    ///
    /// # Errors
    /// As the engine's.
    pub fn create(&self, request: v1::VolumeCreate) -> Result<v1::Volume> {
        check_name("a volume", &request.name)?;
        let spec = engine::VolumeSpec {
            name: request.name,
            size: request.size,
            lba_size: request.lba_size,
            thick: request.thick,
            quota: request.quota.unwrap_or(0),
            reservation: request.reservation.unwrap_or(0),
        };
        let (policy, group) = (request.policy.as_deref(), request.group.as_deref());
        let policy = qos::choice(policy, group, request.overcommit).unwrap_or_default();
        self.registry
            .volume_create_with(&request.pool, &spec, &policy)
            .map(|status| self.shown(status))
    }

    /// Resizes a volume.
    ///
    /// # Errors
    /// As the engine's, while a stream is received into it, and `Busy` when it would shrink under
    /// connected hosts without `force`.
    pub fn resize(
        &self,
        pool: &str,
        volume: &str,
        request: v1::VolumeResize,
    ) -> Result<v1::Volume> {
        let _changes = self.registry.begin_change();
        self.exports.check_not_moving(pool, Some(volume))?;
        let shrinks = request.shrink && request.size < self.show(pool, volume)?.size;
        if shrinks && !request.force {
            self.exports.check_no_hosts(pool, Some(volume))?;
        }
        self.registry
            .volume_resize(pool, volume, request.size, request.shrink)
            .map(|status| self.shown(status))
    }

    /// Changes quota, reservation, placement and policy of a volume.
    ///
    /// # Errors
    /// As the engine's.
    pub fn change(
        &self,
        pool: &str,
        volume: &str,
        request: v1::VolumeChange,
    ) -> Result<v1::Volume> {
        self.registry
            .volume_change(pool, volume, &request.to_engine())
            .map(|status| self.shown(status))
    }

    /// Deletes a volume, with `force` also its exports.
    ///
    /// # Errors
    /// As the engine's, and without `force` when it is exported.
    pub fn delete(&self, pool: &str, volume: &str, force: bool) -> Result<v1::JobRef> {
        let _changes = self.registry.begin_change();
        let delete = || self.registry.volume_delete(pool, volume);
        let job = self.exports.delete_with(pool, volume, force, &delete)?;
        Ok(self.jobs.reference(job))
    }

    /// Counters of a volume.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn counters(&self, pool: &str, volume: &str) -> Result<v1::Counters> {
        self.registry
            .volume_counters(pool, volume)
            .map(ToApi::to_api)
    }

    /// Map of a range of the volume, by default up to its end, in `cells` cells.
    ///
    /// # Errors
    /// When it does not exist, or the range or number of cells is invalid.
    pub fn map(
        &self,
        pool: &str,
        volume: &str,
        cells: Option<usize>,
        start: u64,
        length: Option<u64>,
    ) -> Result<v1::VolumeMap> {
        let cells = cells.unwrap_or(CELLS_DEFAULT);
        if !(1..=CELLS_MAX).contains(&cells) {
            return Err(Problem::invalid(format!(
                "a map has 1 to {CELLS_MAX} cells, not {cells}"
            )));
        }
        let size = self.show(pool, volume)?.size;
        if start >= size || length == Some(0) {
            return Err(Problem::invalid(format!(
                "offset {start} is beyond the end of the volume, which has {size} bytes"
            )));
        }
        let end = length.map_or(size, |length| start.saturating_add(length).min(size));
        let map = self.registry.volume_map(pool, volume, start..end, cells)?;
        Ok(v1::VolumeMap {
            size,
            start,
            cells: map.to_api(),
        })
    }
}
