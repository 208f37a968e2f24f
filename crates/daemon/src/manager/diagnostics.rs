//! Diagnostics: read latency by tier, and forecasts for other sizes of the fast tier; the placement
//! of single blocks is in `explain`.

mod explain;

use super::Result;
use super::registry::PoolRegistry;
use super::status_cache::StatusCache;
use super::volumes::Volumes;
use crate::control::PoolCalls;
use crate::history::share_of_times;
use api::v1;
use engine::{SourceTimes, TIME_BOUNDS, Times};
use std::sync::Arc;

fn told(sources: &SourceTimes) -> v1::Latency {
    let source = |times: &Times| v1::SourceLatency {
        counts: times.counts.to_vec(),
        ns: times.ns,
        p50_s: share_of_times(&times.counts, 0.5),
        p99_s: share_of_times(&times.counts, 0.99),
        p999_s: share_of_times(&times.counts, 0.999),
    };
    v1::Latency {
        bounds_ns: TIME_BOUNDS.values().collect(),
        ram: source(&sources.ram),
        fast: source(&sources.fast),
        slow: source(&sources.slow),
    }
}

fn forecast(of: engine::Forecast) -> v1::Forecast {
    let point = |point: engine::ForecastPoint| v1::ForecastPoint {
        percent: point.percent,
        bytes: point.bytes,
        lru_hits: point.lru_hits,
        hits: point.hits,
        mean_ns: point.mean_ns,
    };
    v1::Forecast {
        volume: of.volume,
        uses: of.uses,
        used_bytes: of.used_bytes,
        points: of.points.into_iter().map(point).collect(),
    }
}

/// Diagnostics of open pools, computed on request.
pub struct Diagnostics {
    registry: Arc<PoolRegistry>,
    status: Arc<StatusCache>,
    volumes: Arc<Volumes>,
}

impl Diagnostics {
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        status: &Arc<StatusCache>,
        volumes: &Arc<Volumes>,
    ) -> Self {
        Self {
            registry: Arc::clone(registry),
            status: Arc::clone(status),
            volumes: Arc::clone(volumes),
        }
    }

    /// Read latency of a pool.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn pool_latency(&self, pool: &str) -> Result<v1::Latency> {
        self.registry.pool_status(pool)?;
        Ok(self.latency_of(pool, |_| true))
    }

    /// Read latency of a volume.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn volume_latency(&self, pool: &str, volume: &str) -> Result<v1::Latency> {
        self.volumes.show(pool, volume)?;
        Ok(self.latency_of(pool, |name| name == volume))
    }

    /// Uses the cached status of this second; objects created since have no reads.
    fn latency_of(&self, pool: &str, counts: impl Fn(&str) -> bool) -> v1::Latency {
        let look = self.status.recent();
        let pools = look.pools.iter().filter(|known| known.status.name == pool);
        let volumes = pools.flat_map(|known| &known.volumes);
        let mut sum = SourceTimes::default();
        volumes
            .filter(|volume| counts(&volume.status.name))
            .for_each(|volume| sum.add(&volume.sources));
        told(&sum)
    }

    /// Forecast of hit rates of a pool and its volumes with other sizes of the fast tier.
    ///
    /// # Errors
    /// When the pool is not open, or does not have two tiers.
    pub fn pool_what_if(&self, pool: &str) -> Result<v1::WhatIf> {
        let told = self.registry.pool_what_if(pool)?;
        Ok(v1::WhatIf {
            fast_ns: told.fast_ns,
            slow_ns: told.slow_ns,
            pool: forecast(told.pool),
            volumes: told.volumes.into_iter().map(forecast).collect(),
        })
    }
}
