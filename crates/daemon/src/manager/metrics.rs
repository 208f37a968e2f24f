//! Figures for a scrape: what is known now, gathered without waiting for work under way.

use super::core::{Manager, Result, lock};
use crate::mapping::ToApi;
use crate::metrics::{self, Format, Page, PoolFigures};
use engine::PoolLook;
use std::time::Instant;

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
        let absent = lock(&self.absent).clone();
        metrics::daemon(&mut page, self.began.elapsed(), &absent);
        metrics::jobs(&mut page, &self.job_list()?.items);
        metrics::exports(&mut page, &self.export_list(None).items);
        for look in self.look_now().pools.iter().cloned() {
            metrics::pool(&mut page, &self.figures(look));
        }
        metrics::took(&mut page, began.elapsed());
        Ok(page.text(format))
    }

    /// What a pool tells. It may be closed meanwhile: then the rest is left out.
    fn figures(&self, look: PoolLook) -> PoolFigures {
        let moves = self.pool_moves(&look.status.name);
        PoolFigures {
            snapshots: look.snapshots,
            counters: look.counters.to_api(),
            moves: moves.map_or(Vec::new(), |counts| counts.items),
            volumes: look.volumes,
            pool: self.pool(look.status),
        }
    }
}
