//! How long reads took, by where blocks came from.

use super::core::{Manager, Result};
use crate::history::share_of_times;
use api::v1;
use engine::{SourceTimes, TIME_BOUNDS, Times};

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

impl Manager {
    /// How long reads of a pool took.
    ///
    /// # Errors
    /// When there is none.
    pub fn pool_latency(&self, pool: &str) -> Result<v1::Latency> {
        self.pool_show(pool)?;
        Ok(self.latency_of(pool, |_| true))
    }

    /// How long reads of a volume took.
    ///
    /// # Errors
    /// When there is none.
    pub fn volume_latency(&self, pool: &str, volume: &str) -> Result<v1::Latency> {
        self.volume_show(pool, volume)?;
        Ok(self.latency_of(pool, |name| name == volume))
    }

    /// As the look of this second saw it: of what was made since then nothing was.
    fn latency_of(&self, pool: &str, counts: impl Fn(&str) -> bool) -> v1::Latency {
        let look = self.look_lately();
        let pools = look.pools.iter().filter(|known| known.status.name == pool);
        let volumes = pools.flat_map(|known| &known.volumes);
        let mut sum = SourceTimes::default();
        volumes
            .filter(|volume| counts(&volume.status.name))
            .for_each(|volume| sum.add(&volume.sources));
        told(&sum)
    }
}
