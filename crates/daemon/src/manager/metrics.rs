//! Figures for a scrape: what is known now, gathered without waiting for work under way.

use super::core::{Manager, Result};
use crate::mapping::ToApi;
use crate::metrics::{self, Format, Page, PoolFigures, Times};
use engine::PoolLook;
use std::time::Instant;

impl Manager {
    /// Everything that is known, for a scrape. `http/scrapes.rs` has one gathered at a time, however many ask.
    ///
    /// # Errors
    /// As the engine's.
    pub fn metrics(&self, format: Format) -> Result<String> {
        let began = Instant::now();
        let mut page = Page::default();
        let absent = self.absent_pools();
        metrics::daemon(&mut page, self.began.elapsed(), &absent);
        let memory = &self.request_memory;
        metrics::request_memory(&mut page, memory.all(), memory.waiting());
        metrics::jobs(&mut page, &self.job_list()?.items);
        let now = self.look_now();
        let exports = now.pools.iter().flat_map(|look| {
            let exports = look.exports.iter();
            exports.map(|export| ((look.status.name.as_str(), export.name.as_str()), export))
        });
        let exports = exports.collect();
        metrics::exports(&mut page, &self.export_list(None).items, &exports);
        for look in now.pools.iter().cloned() {
            metrics::pool(&mut page, &self.figures(look));
        }
        metrics::took(&mut page, began.elapsed());
        Ok(page.text(format))
    }

    /// What a pool tells. It may be closed meanwhile: then the rest is left out.
    fn figures(&self, look: PoolLook) -> PoolFigures {
        let moves = self.pool_moves(&look.status.name);
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
            pool: self.pool(look.status),
        }
    }
}
