//! Pools: create, open, close, destroy, change settings; and opened again after a restart of the daemon.

mod drives;
mod scrubs;

use super::Result;
use super::anchors::AuditAnchors;
use super::exports::Exports;
use super::fills::FillMonitor;
use super::health::DriveHealthMonitor;
use super::jobs::Jobs;
use super::registry::PoolRegistry;
use super::wear::WearMonitor;
use crate::ScrubSchedule;
use crate::control::{Control, PoolCalls};
use crate::mapping::{self, ToApi, ToEngine};
use crate::names::check_name;
use crate::state::KnownPool;
use api::v1::{self, Problem, ProblemCode};
use engine::{ImportOptions, MissingDrives, PoolStatus};
use std::io;
use std::sync::Arc;

/// Says which drives a pool was opened without.
fn tell_absences(status: &PoolStatus) {
    let drives = status.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
    for drive in drives.filter(|drive| drive.state == "missing") {
        tracing::warn!(
            "pool {} is open without its drive {}: bring the drive back",
            status.name,
            drive.spec
        );
    }
}

fn not_kept(what: &str, error: &io::Error) -> Problem {
    Problem::new(
        ProblemCode::Io,
        format!(
            "{what} was not done, since the state folder cannot be written ({error}): make space \
             or correct its permissions and try again"
        ),
    )
}

/// The pools, open and absent.
pub struct Pools {
    control: Arc<dyn Control>,
    registry: Arc<PoolRegistry>,
    jobs: Arc<Jobs>,
    scrubs: ScrubSchedule,
    exports: Arc<Exports>,
    anchors: Arc<AuditAnchors>,
    fills: Arc<FillMonitor>,
    wear: Arc<WearMonitor>,
    health: Arc<DriveHealthMonitor>,
}

impl Pools {
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        jobs: &Arc<Jobs>,
        scrubs: ScrubSchedule,
        (exports, anchors): (&Arc<Exports>, &Arc<AuditAnchors>),
        (fills, wear, health): (
            &Arc<FillMonitor>,
            &Arc<WearMonitor>,
            &Arc<DriveHealthMonitor>,
        ),
    ) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            registry: Arc::clone(registry),
            jobs: Arc::clone(jobs),
            scrubs,
            exports: Arc::clone(exports),
            anchors: Arc::clone(anchors),
            fills: Arc::clone(fills),
            wear: Arc::clone(wear),
            health: Arc::clone(health),
        }
    }

    /// A pool, with how it fills, and what was written to its drives.
    pub(super) fn shown(&self, mut status: PoolStatus) -> v1::Pool {
        let (fills, warnings) = self.fills.of(&status);
        status.messages.extend(warnings);
        let mut pool = mapping::pool(status.clone(), fills);
        let drives = status.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
        let shown = pool
            .vdrives
            .iter_mut()
            .flat_map(|vdrive| &mut vdrive.drives);
        // They are listed in the same order.
        for (drive, shown) in drives.zip(shown) {
            shown.wear = self.wear.of(&status.id, drive);
            shown.health = self.health.health(&drive.spec);
        }
        pool.scrub.job = pool.scrub.job.map(|job| self.jobs.reference(job).job);
        pool
    }

    /// Opens the pools that were open when the last daemon ended, and those that lie complete on `drives`, and starts their
    /// exports. What cannot be opened is logged and listed as absent.
    pub(super) fn open_all(&self, drives: &[String]) {
        for known in self.registry.state().load() {
            self.open_known(known);
        }
        if !drives.is_empty() {
            self.open_found(drives);
        }
        self.registry.try_save();
    }

    /// Opens a pool that was open when the last daemon ended: without drives that are gone where the others can do without,
    /// as it was served before, but not from drives that are older than what this host has seen of it.
    fn open_known(&self, known: KnownPool) {
        let options = ImportOptions {
            missing: MissingDrives::Gone,
            seen: known.generation,
            ..ImportOptions::default()
        };
        match self.control.pool_import(&known.drives, &known.id, options) {
            Ok(status) => {
                tell_absences(&status);
                tracing::info!("pool {} is open", status.name);
                self.anchors.check(&status.name);
                self.exports.start(&status.name);
            }
            Err(why) => {
                let message = format!(
                    "pool {} is not open: {why}; once that is mended, open it with `convect pool \
                     import {} --drive SPEC...`, or forget it with `convect pool export {}`",
                    known.name, known.name, known.name
                );
                tracing::error!("{message}");
                self.registry.add_absent(known, message);
            }
        }
    }

    fn open_found(&self, drives: &[String]) {
        let found = match self.control.pool_scan(drives) {
            Ok(found) => found.pools,
            Err(error) => {
                tracing::error!("the drives of the configuration could not be searched: {error}");
                return;
            }
        };
        let known = self.registry.absent_pools();
        let is_known = |pool: &engine::Importable| known.iter().any(|known| known.id == pool.id);
        for pool in found.into_iter().filter(|pool| !is_known(pool)) {
            self.open_known(KnownPool {
                id: pool.id,
                name: pool.name,
                drives: pool.found,
                generation: 0,
            });
        }
    }

    /// The pools.
    ///
    /// # Errors
    /// As the engine's.
    pub fn list(&self) -> Result<v1::PoolList> {
        let open = self.control.pool_list().map_err(ToApi::to_api)?;
        Ok(v1::PoolList {
            items: open.into_iter().map(|pool| self.shown(pool)).collect(),
            absent: self.registry.absent_pools(),
        })
    }

    /// One pool.
    ///
    /// # Errors
    /// When it is not open.
    pub fn show(&self, pool: &str) -> Result<v1::Pool> {
        self.registry
            .pool_status(pool)
            .map(|status| self.shown(status))
    }

    /// Makes a pool.
    ///
    /// # Errors
    /// As the engine's, or when it could not be opened again after a restart.
    pub fn create(&self, request: v1::PoolCreate) -> Result<v1::Pool> {
        check_name("a pool", &request.name)?;
        let _changes = self.registry.begin_change();
        if let Some(absent) = self.registry.absent(&request.name) {
            return Err(Problem::new(
                ProblemCode::Exists,
                format!("the name {} is taken: {}", request.name, absent.message),
            ));
        }
        let status = self
            .control
            .pool_create(&request.to_engine())
            .map_err(ToApi::to_api)?;
        if let Err(error) = self.registry.save() {
            if let Err(error) = self.control.pool_destroy(&status.name) {
                tracing::error!("pool {} could not be taken back: {error}", status.name);
            }
            return Err(not_kept("making the pool", &error));
        }
        tracing::info!("pool {} was made", status.name);
        Ok(self.shown(status))
    }

    /// The pools on these drives that are not open.
    ///
    /// # Errors
    /// As the engine's.
    pub fn scan(&self, drives: &[String]) -> Result<v1::ImportableList> {
        let found = self.control.pool_scan(drives).map_err(ToApi::to_api)?;
        Ok(v1::ImportableList {
            items: found.pools.to_api(),
            passed_over: found.passed_over,
        })
    }

    /// Opens a pool and starts its exports.
    ///
    /// # Errors
    /// As the engine's, or when it could not be opened again after a restart.
    pub fn import(&self, pool: &str, request: &v1::PoolImport) -> Result<v1::Pool> {
        let _changes = self.registry.begin_change();
        let options = ImportOptions {
            accept_old: request.accept_old,
            seen: self.registry.seen(pool),
            ..ImportOptions::from(request.degraded)
        };
        let imported = self.control.pool_import(&request.drives, pool, options);
        let status = imported.map_err(ToApi::to_api)?;
        if let Err(error) = self.registry.forget_and_save(&status.id) {
            if let Err(error) = self.control.pool_export(&status.name) {
                tracing::error!("pool {} could not be closed again: {error}", status.name);
            }
            return Err(not_kept("opening the pool", &error));
        }
        tracing::info!("pool {} is open", status.name);
        self.exports.start(&status.name);
        Ok(self.shown(status))
    }

    /// Stops the pool's exports and closes it; one that could not be opened is forgotten.
    ///
    /// # Errors
    /// As the engine's; the exports are started again then.
    pub fn export(&self, pool: &str) -> Result<()> {
        let _changes = self.registry.begin_change();
        match self.control.pool_status(pool) {
            Ok(status) => {
                self.exports.stop(&status.name);
                if let Err(error) = self.control.pool_export(&status.name) {
                    self.exports.start(&status.name);
                    return Err(error.to_api());
                }
                tracing::info!("pool {} is closed", status.name);
            }
            Err(error) => {
                let Some(absent) = self.registry.absent(pool) else {
                    return Err(error.to_api());
                };
                self.registry.forget(&absent.id);
                tracing::info!("pool {} is forgotten", absent.name);
            }
        }
        self.registry.try_save();
        Ok(())
    }

    /// Forgets a pool and everything in it.
    ///
    /// # Errors
    /// As the engine's, and while volumes of it are exported.
    pub fn destroy(&self, pool: &str) -> Result<()> {
        let _changes = self.registry.begin_change();
        let status = self.registry.pool_status(pool)?;
        self.exports.check_unused(&status.name, None)?;
        self.control
            .pool_destroy(&status.name)
            .map_err(ToApi::to_api)?;
        tracing::info!("pool {} was destroyed", status.name);
        self.registry.try_save();
        Ok(())
    }

    /// What the pool did.
    ///
    /// # Errors
    /// When it is not open.
    pub fn counters(&self, pool: &str) -> Result<v1::Counters> {
        self.registry.pool_counters(pool).map(ToApi::to_api)
    }

    /// Writes everything back and forgets all clean copies.
    ///
    /// # Errors
    /// As the engine's.
    pub fn cool(&self, pool: &str) -> Result<()> {
        self.registry.pool_cool(pool)
    }

    /// Holds or releases promotion.
    ///
    /// # Errors
    /// When it is not open.
    pub fn hold_promotion(&self, pool: &str, hold: bool) -> Result<()> {
        self.registry.pool_hold_promotion(pool, hold)
    }

    /// Sets the levels at which it is warned.
    ///
    /// # Errors
    /// As the engine's.
    pub fn warn_at(&self, pool: &str, request: &v1::PoolWarnings) -> Result<v1::Pool> {
        self.registry
            .pool_warn_at(pool, &request.at)
            .map(|status| self.shown(status))
    }

    /// Changes what promotion of a pool may write.
    ///
    /// # Errors
    /// As the engine's.
    pub fn change(&self, pool: &str, request: &v1::PoolChange) -> Result<v1::Pool> {
        let change = engine::PoolChange {
            promotion_budget: request.promotion_budget,
        };
        self.registry
            .pool_change(pool, &change)
            .map(|status| self.shown(status))
    }
}
