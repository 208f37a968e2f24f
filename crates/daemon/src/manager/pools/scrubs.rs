//! Scrubs: on request and by schedule.

use super::Pools;
use crate::clock::now_s;
use crate::control::PoolCalls;
use crate::manager::Result;
use crate::mapping::ToApi;
use api::v1;
use engine::{EngineError, ScrubSpec};

impl Pools {
    /// Starts a scrub.
    ///
    /// # Errors
    /// As the engine's.
    pub fn scrub(&self, pool: &str, request: v1::ScrubStart) -> Result<v1::JobRef> {
        let spec = ScrubSpec {
            rate: request.rate.unwrap_or(self.scrubs.rate),
            began_s: now_s(),
        };
        self.registry
            .pool_scrub(pool, &spec)
            .map(|job| self.jobs.reference(job))
    }

    /// Cancels a scrub.
    ///
    /// # Errors
    /// As the engine's.
    pub fn scrub_cancel(&self, pool: &str) -> Result<()> {
        self.registry.pool_scrub_cancel(pool)
    }

    /// The running scrub, or the last one.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn scrub_show(&self, pool: &str) -> Result<v1::Scrub> {
        let mut scrub: v1::Scrub = self.registry.pool_scrub_status(pool)?.to_api();
        scrub.job = scrub.job.map(|job| self.jobs.reference(job).job);
        Ok(scrub)
    }

    /// Starts the scrubs that are due at `now_s`, seconds since 1970.
    pub fn scrub_what_is_due(&self, now_s: u64) {
        let pools = match self.control.pool_list() {
            Ok(pools) => pools,
            Err(error) => {
                tracing::error!("cannot check for due scrubs: {error}");
                return;
            }
        };
        for pool in pools {
            if let Err(error) = self.scrub_if_due(&pool, now_s) {
                tracing::warn!("cannot start the scrub of pool {}: {error}", pool.name);
            }
        }
    }

    fn scrub_if_due(
        &self,
        pool: &engine::PoolStatus,
        now_s: u64,
    ) -> std::result::Result<(), EngineError> {
        let scrub = &pool.scrub;
        if self.scrubs.every.is_none() || scrub.job.is_some() {
            return Ok(());
        }
        if scrub.began_s == 0 {
            return self.control.pool_scrub_since(&pool.name, now_s);
        }
        if !self.scrubs.is_due(scrub.began_s, now_s) {
            return Ok(());
        }
        let spec = ScrubSpec {
            rate: self.scrubs.rate,
            began_s: now_s,
        };
        let job = self.control.pool_scrub(&pool.name, &spec)?;
        let job = self.jobs.reference(job).job;
        tracing::info!("scrub of pool {} started as job {job}", pool.name);
        Ok(())
    }

    /// Starts the scrubs that are due now.
    pub fn scrub_what_is_due_now(&self) {
        self.scrub_what_is_due(now_s());
    }
}
