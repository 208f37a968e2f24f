//! Prometheus metrics, gathered from the current status without waiting for work in progress.

use super::Result;
use super::diagnostics::Diagnostics;
use super::exports::Exports;
use super::jobs::Jobs;
use super::pools::Pools;
use super::registry::PoolRegistry;
use super::status_cache::StatusCache;
use crate::mapping::ToApi;
use crate::metrics::{self, Format, Page, PoolFigures, Times};
use engine::PoolLook;
use std::sync::Arc;
use std::time::Instant;

/// Sources of a scrape.
pub struct MetricsSource {
    registry: Arc<PoolRegistry>,
    exports: Arc<Exports>,
    jobs: Arc<Jobs>,
    status: Arc<StatusCache>,
    pools: Arc<Pools>,
    diagnostics: Arc<Diagnostics>,
    began: Instant,
}

impl MetricsSource {
    pub(super) fn new(
        (registry, status): (&Arc<PoolRegistry>, &Arc<StatusCache>),
        exports: &Arc<Exports>,
        jobs: &Arc<Jobs>,
        pools: &Arc<Pools>,
        diagnostics: &Arc<Diagnostics>,
        began: Instant,
    ) -> Self {
        Self {
            registry: Arc::clone(registry),
            exports: Arc::clone(exports),
            jobs: Arc::clone(jobs),
            status: Arc::clone(status),
            pools: Arc::clone(pools),
            diagnostics: Arc::clone(diagnostics),
            began,
        }
    }

    /// Gathers all metrics. `http/scrapes.rs` runs one scrape at a time for any number of callers.
    ///
    /// # Errors
    /// As the engine's.
    pub fn gather(&self, format: Format) -> Result<String> {
        let began = Instant::now();
        let mut page = Page::default();
        let absent = self.registry.absent_pools();
        metrics::daemon(&mut page, self.began.elapsed(), &absent);
        let memory = self.exports.memory();
        metrics::request_memory(&mut page, memory.all(), memory.waiting());
        metrics::jobs(&mut page, &self.jobs.list()?.items);
        let now = self.status.refresh();
        let exports = now.pools.iter().flat_map(|look| {
            let exports = look.exports.iter();
            exports.map(|export| ((look.status.name.as_str(), export.name.as_str()), export))
        });
        let exports = exports.collect();
        metrics::exports(&mut page, &self.exports.list(None).items, &exports);
        for look in now.pools.iter().cloned() {
            metrics::pool(&mut page, &self.figures(look));
        }
        metrics::took(&mut page, began.elapsed());
        Ok(page.text(format))
    }

    /// Metrics of a pool. If it is closed concurrently, the rest is left out.
    fn figures(&self, look: PoolLook) -> PoolFigures {
        let moves = self.diagnostics.pool_moves(&look.status.name);
        let vdrives = look.status.vdrives.iter();
        let drives = vdrives.flat_map(|vdrive| &vdrive.drives).map(|drive| {
            let times = Times {
                ns: [drive.read_ns, drive.write_ns],
                spread: drive.spread,
            };
            (drive.id.clone(), times)
        });
        PoolFigures {
            snapshots: look.snapshots,
            counters: look.counters.to_api(),
            moves: moves.map_or(Vec::new(), |counts| counts.items),
            drives: drives.collect(),
            volumes: look.volumes,
            groups: look.groups,
            pool: self.pools.shown(look.status),
        }
    }
}
