//! Volumes, with what exports add to them.

use super::core::{Manager, Result, check_name, lock};
use crate::mapping::{self, ToApi, ToEngine};
use crate::qos;
use api::v1::{self, Problem, ProblemCode};

/// Parts of a map when the caller does not say, and the most.
const CELLS_DEFAULT: usize = 64;
const CELLS_MAX: usize = 65_536;

impl Manager {
    pub(super) fn volume(&self, status: engine::VolumeStatus) -> v1::Volume {
        let exports = self.exports_of(&status.pool, Some(&status.name));
        let (pool, name) = (status.pool.clone(), status.name.clone());
        let mut volume = mapping::volume(status, exports);
        if let Some(qos) = &mut volume.qos {
            self.tell_bottleneck(&pool, &name, qos);
        }
        volume
    }

    /// The name of one pool, or of all that are open.
    pub(super) fn one_or_all(&self, pool: Option<&str>) -> Result<Vec<String>> {
        match pool {
            Some(pool) => Ok(vec![pool.to_owned()]),
            None => {
                let open = self.control.pool_list().map_err(ToApi::to_api)?;
                Ok(open.into_iter().map(|pool| pool.name).collect())
            }
        }
    }

    /// The volumes of one pool, or of all.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn volume_list(&self, pool: Option<&str>) -> Result<v1::VolumeList> {
        let mut items = Vec::new();
        for pool in self.one_or_all(pool)? {
            let volumes = self.control.volume_list(&pool);
            let volumes = volumes.map_err(|error| self.pool_problem(&pool, error))?;
            items.extend(volumes.into_iter().map(|volume| self.volume(volume)));
        }
        Ok(v1::VolumeList { items })
    }

    /// One volume.
    ///
    /// # Errors
    /// When there is none.
    pub fn volume_show(&self, pool: &str, volume: &str) -> Result<v1::Volume> {
        let volumes = self.volume_list(Some(pool))?.items;
        let found = volumes.into_iter().find(|known| known.name == volume);
        found.ok_or_else(|| {
            Problem::new(
                ProblemCode::NotFound,
                format!(
                    "there is no volume {volume} in pool {pool}: `convect volume list {pool}` \
                     shows those that are"
                ),
            )
        })
    }

    /// Makes a volume.
    ///
    /// # Errors
    /// As the engine's.
    pub fn volume_create(&self, request: v1::VolumeCreate) -> Result<v1::Volume> {
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
        let created = (self.control).volume_create_with(&request.pool, &spec, &policy);
        created
            .map(|status| self.volume(status))
            .map_err(|error| self.pool_problem(&request.pool, error))
    }

    /// Gives a volume another size.
    ///
    /// # Errors
    /// As the engine's, and while it is received.
    pub fn volume_resize(
        &self,
        pool: &str,
        volume: &str,
        request: v1::VolumeResize,
    ) -> Result<v1::Volume> {
        self.check_not_moving(pool, Some(volume))?;
        let resized = self
            .control
            .volume_resize(pool, volume, request.size, request.shrink);
        resized
            .map(|status| self.volume(status))
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Changes what a volume may take of its pool, what is kept for it, its placement and its policy.
    ///
    /// # Errors
    /// As the engine's.
    pub fn volume_change(
        &self,
        pool: &str,
        volume: &str,
        request: v1::VolumeChange,
    ) -> Result<v1::Volume> {
        let changed = self
            .control
            .volume_change(pool, volume, &request.to_engine());
        changed
            .map(|status| self.volume(status))
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Deletes a volume.
    ///
    /// # Errors
    /// As the engine's, and while it is exported.
    pub fn volume_delete(&self, pool: &str, volume: &str) -> Result<v1::JobRef> {
        let _changes = lock(&self.changes);
        self.check_unused(pool, Some(volume))?;
        let deleted = self.control.volume_delete(pool, volume);
        deleted
            .map(|job| self.job_ref(job))
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// What the volume did.
    ///
    /// # Errors
    /// When there is none.
    pub fn volume_counters(&self, pool: &str, volume: &str) -> Result<v1::Counters> {
        let counters = self.control.volume_counters(pool, volume);
        counters
            .map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Where the volume lies, from a byte on for `length` bytes or up to its end, in `cells` parts.
    ///
    /// # Errors
    /// When there is none, or the number of parts or the bytes cannot be.
    pub fn volume_map(
        &self,
        pool: &str,
        volume: &str,
        cells: Option<usize>,
        start: u64,
        length: Option<u64>,
    ) -> Result<v1::VolumeMap> {
        let cells = cells.unwrap_or(CELLS_DEFAULT);
        if !(1..=CELLS_MAX).contains(&cells) {
            return Err(Problem::new(
                ProblemCode::Invalid,
                format!("a map has 1 to {CELLS_MAX} cells, not {cells}"),
            ));
        }
        let size = self.volume_show(pool, volume)?.size;
        if start >= size || length == Some(0) {
            return Err(Problem::new(
                ProblemCode::Invalid,
                format!(
                    "there is nothing to look at from byte {start} on: the volume has {size} bytes"
                ),
            ));
        }
        let end = length.map_or(size, |length| start.saturating_add(length).min(size));
        let map = self.control.volume_map(pool, volume, start..end, cells);
        let map = map.map_err(|error| self.pool_problem(pool, error))?;
        Ok(v1::VolumeMap {
            size,
            start,
            cells: map.to_api(),
        })
    }
}
