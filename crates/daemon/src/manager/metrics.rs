//! Figures for a scrape: what is known now, gathered without waiting for work under way.

use super::core::{Manager, Result, lock};
use crate::mapping::ToApi;
use crate::metrics::{self, Format, Page, PoolFigures};
use api::v1;
use std::time::Instant;

/// A pool whose volumes, times its volumes and snapshots, are more has no counters by volume: asking for those of one
/// costs as much as all volumes and snapshots are.
const COUNTED_MAX: usize = 100_000;

impl Manager {
    /// Everything that is known, for a scrape. One is gathered at a time, so that it costs the same however many
    /// ask.
    ///
    /// # Errors
    /// As the engine's.
    pub fn metrics(&self, format: Format) -> Result<String> {
        let _turn = lock(&self.scrapes);
        let began = Instant::now();
        let mut page = Page::default();
        let pools = self.pool_list()?;
        metrics::daemon(&mut page, self.began.elapsed(), &pools.absent);
        metrics::jobs(&mut page, &self.job_list()?.items);
        metrics::exports(&mut page, &self.export_list(None).items);
        for pool in pools.items {
            metrics::pool(&mut page, &self.figures(pool));
        }
        metrics::took(&mut page, began.elapsed());
        Ok(page.text(format))
    }

    /// What a pool tells. It may be closed meanwhile: then the rest is left out.
    fn figures(&self, pool: v1::Pool) -> PoolFigures {
        let mut volumes = self.control.volume_list(&pool.name).unwrap_or_default();
        // What is being deleted may share its name with a new one.
        volumes.retain(|volume| volume.state == "online");
        let snapshots = self.control.snapshot_list(&pool.name, None);
        let snapshots = snapshots.map_or(0, |found| found.len());
        let counted = volumes.len() * (volumes.len() + snapshots) <= COUNTED_MAX;
        let counters = |volume: &str| {
            let counters = self.control.volume_counters(&pool.name, volume);
            counters.ok().map(ToApi::to_api)
        };
        let spreads = counted.then(|| self.control.volumes_spreads(&pool.name).ok());
        PoolFigures {
            snapshots,
            counted,
            spreads: spreads.flatten().unwrap_or_default(),
            counters: self.pool_counters(&pool.name).ok(),
            moves: self
                .pool_moves(&pool.name)
                .map_or(Vec::new(), |counts| counts.items),
            volumes: volumes
                .into_iter()
                .map(|volume| {
                    let counters = counted.then(|| counters(&volume.name)).flatten();
                    (volume, counters)
                })
                .collect(),
            pool,
        }
    }
}
