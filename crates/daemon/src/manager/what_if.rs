//! What a fast tier of another size would give.

use super::core::{Manager, Result};
use api::v1;

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

impl Manager {
    /// What another size of the fast tier would give a pool and its volumes.
    ///
    /// # Errors
    /// When the pool is not open, or has not two tiers.
    pub fn pool_what_if(&self, pool: &str) -> Result<v1::WhatIf> {
        let told = self.control.pool_what_if(pool);
        let told = told.map_err(|error| self.pool_problem(pool, error))?;
        Ok(v1::WhatIf {
            fast_ns: told.fast_ns,
            slow_ns: told.slow_ns,
            pool: forecast(told.pool),
            volumes: told.volumes.into_iter().map(forecast).collect(),
        })
    }
}
