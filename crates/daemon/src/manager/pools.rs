//! Pools: create, open, close, destroy, change settings, and reopen after a restart.

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
use crate::drive_search;
use crate::mapping::{self, ToApi, ToEngine};
use crate::names::check_name;
use crate::state::KnownPool;
use api::v1::{self, Problem, ProblemCode};
use engine::{ImportOptions, Importable, MissingDrives, PoolStatus};
use std::io;
use std::sync::Arc;

/// Logs the drives that a pool was opened without.
fn tell_absences(status: &PoolStatus) {
    let drives = status.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
    for drive in drives.filter(|drive| drive.state == "missing") {
        tracing::warn!(
            "pool {} is open without its drive {}: reconnect the drive",
            status.name,
            drive.spec
        );
    }
}

fn not_kept(what: &str, error: &io::Error) -> Problem {
    Problem::new(
        ProblemCode::Io,
        format!(
            "{what} failed, since the state folder cannot be written ({error}): free space or \
             correct its permissions, and try again"
        ),
    )
}

/// `drives`, and those in `folders`.
fn searched(drives: &[String], folders: &[String]) -> Result<Vec<String>> {
    let mut all = drives.to_vec();
    for folder in folders {
        all.extend(drive_search::drives_in(folder).map_err(Problem::invalid)?);
    }
    Ok(all)
}

/// Open and absent pools.
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

    /// A pool with its fill levels and wear.
    pub(super) fn shown(&self, mut status: PoolStatus) -> v1::Pool {
        let (fills, warnings) = self.fills.of(&status);
        status.messages.extend(warnings);
        let mut pool = mapping::pool(status.clone(), fills);
        let drives = status.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
        let shown = pool
            .vdrives
            .iter_mut()
            .flat_map(|vdrive| &mut vdrive.drives);
        // Both lists are in the same order.
        for (drive, shown) in drives.zip(shown) {
            shown.wear = self.wear.of(&status.id, drive);
            shown.health = self.health.health(&drive.spec);
        }
        pool.scrub.job = pool.scrub.job.map(|job| self.jobs.reference(job).job);
        pool
    }

    /// Opens the pools that were open when the previous daemon stopped and those that are complete
    /// on `drives`, and starts their exports. Pools that cannot be opened are logged and listed as
    /// absent.
    pub(super) fn open_all(&self, drives: &[String]) {
        for known in self.registry.state().load() {
            self.open_known(known);
        }
        if !drives.is_empty() {
            self.open_found(drives);
        }
        self.registry.try_save();
    }

    /// Reopens a pool after a restart: degraded if it was usable without the missing drives, as
    /// before, but not from drives older than the state that this host has seen.
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
                    "pool {} is not open: {why}; once that is resolved, open it with `convect \
                     pool import {} --drive SPEC...`, or remove it with `convect pool export {}`",
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
                tracing::error!("cannot search the configured drives: {error}");
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

    /// Creates a pool.
    ///
    /// # Errors
    /// As the engine's, or when the state folder cannot be written.
    pub fn create(&self, request: v1::PoolCreate) -> Result<v1::Pool> {
        check_name("a pool", &request.name)?;
        let _changes = self.registry.begin_change();
        if let Some(absent) = self.registry.absent(&request.name) {
            return Err(Problem::new(
                ProblemCode::Exists,
                format!(
                    "pool {} already exists but is not open: {}",
                    request.name, absent.message
                ),
            ));
        }
        let status = self
            .control
            .pool_create(&request.to_engine())
            .map_err(ToApi::to_api)?;
        if let Err(error) = self.registry.save() {
            if let Err(error) = self.control.pool_destroy(&status.name) {
                tracing::error!(
                    "cannot destroy pool {} after a failure: {error}",
                    status.name
                );
            }
            return Err(not_kept("creating the pool", &error));
        }
        tracing::info!("pool {} created", status.name);
        Ok(self.shown(status))
    }

    /// Pools on these drives, and on those in these folders, that are not open.
    ///
    /// # Errors
    /// As the engine's, and when a folder cannot be searched. Drives found in folders that cannot be
    /// opened are only noted.
    pub fn scan(&self, request: &v1::PoolScan) -> Result<v1::ImportableList> {
        let drives = searched(&request.drives, &request.folders)?;
        match self.control.pool_scan(&self.with_others(None, drives)) {
            Ok(found) => Ok(v1::ImportableList {
                items: found.pools.to_api(),
                passed_over: found.passed_over,
            }),
            Err(error) if request.drives.is_empty() => Ok(v1::ImportableList {
                items: Vec::new(),
                passed_over: vec![error.message],
            }),
            Err(error) => Err(error.to_api()),
        }
    }

    /// `drives`, and the others of the pool (of all of them without a name) that are where labels say.
    fn with_others(&self, pool: Option<&str>, mut drives: Vec<String>) -> Vec<String> {
        // What is wrong with the drives, the next search says.
        let Ok(found) = self.control.pool_scan(&drives) else {
            return drives;
        };
        let is_asked =
            |known: &&Importable| pool.is_none_or(|pool| known.name == pool || known.id == pool);
        let others = found.pools.iter().filter(is_asked);
        let others = others.flat_map(|known| known.missing.iter());
        drives.extend(others.filter(|spec| drive_search::is_there(spec)).cloned());
        drives
    }

    /// Opens a pool and starts its exports.
    ///
    /// # Errors
    /// As the engine's, or when the state folder cannot be written.
    pub fn import(&self, pool: &str, request: &v1::PoolImport) -> Result<v1::Pool> {
        let _changes = self.registry.begin_change();
        let options = ImportOptions {
            accept_old: request.accept_old,
            seen: self.registry.seen(pool),
            ..ImportOptions::from(request.degraded)
        };
        let drives = searched(&request.drives, &request.folders)?;
        // Who accepts missing drives may have left some out on purpose.
        let drives = match request.degraded {
            true => drives,
            false => self.with_others(Some(pool), drives),
        };
        let imported = self.control.pool_import(&drives, pool, options);
        let status = imported.map_err(ToApi::to_api)?;
        if let Err(error) = self.registry.forget_and_save(&status.id) {
            if let Err(error) = self.control.pool_export(&status.name) {
                tracing::error!("cannot close pool {} after a failure: {error}", status.name);
            }
            return Err(not_kept("opening the pool", &error));
        }
        tracing::info!("pool {} is open", status.name);
        self.exports.start(&status.name);
        Ok(self.shown(status))
    }

    /// Stops the pool's exports and closes it; an absent pool is removed from the list.
    ///
    /// # Errors
    /// As the engine's; the exports are started again then. `Busy` without `force` while hosts are
    /// connected.
    pub fn export(&self, pool: &str, force: bool) -> Result<()> {
        let _changes = self.registry.begin_change();
        match self.control.pool_status(pool) {
            Ok(status) => {
                if !force {
                    self.exports.check_no_hosts(&status.name, None)?;
                }
                self.exports.stop(&status.name);
                if let Err(error) = self.control.pool_export(&status.name) {
                    self.exports.start(&status.name);
                    return Err(error.to_api());
                }
                tracing::info!("pool {} closed", status.name);
            }
            Err(error) => {
                let Some(absent) = self.registry.absent(pool) else {
                    return Err(error.to_api());
                };
                self.registry.forget(&absent.id);
                tracing::info!("pool {} removed from the list", absent.name);
            }
        }
        self.registry.try_save();
        Ok(())
    }

    /// Destroys a pool with all of its data.
    ///
    /// # Errors
    /// As the engine's, and without `force` when volumes of it are exported. If it fails, the
    /// exports are started again.
    pub fn destroy(&self, pool: &str, force: bool) -> Result<()> {
        let _changes = self.registry.begin_change();
        let status = self.registry.pool_status(pool)?;
        let name = &status.name;
        self.exports.check_unused_unless(force, name, None)?;
        self.exports.stop(name);
        if let Err(error) = self.control.pool_destroy(name) {
            self.exports.start(name);
            return Err(error.to_api());
        }
        tracing::info!("pool {} destroyed", status.name);
        self.registry.try_save();
        Ok(())
    }

    /// Counters of the pool.
    ///
    /// # Errors
    /// When it is not open.
    pub fn counters(&self, pool: &str) -> Result<v1::Counters> {
        self.registry.pool_counters(pool).map(ToApi::to_api)
    }

    /// Writes all dirty data back and evicts all clean copies.
    ///
    /// # Errors
    /// As the engine's.
    pub fn cool(&self, pool: &str) -> Result<()> {
        self.registry.pool_cool(pool)
    }

    /// Pauses or resumes promotion.
    ///
    /// # Errors
    /// When it is not open.
    pub fn hold_promotion(&self, pool: &str, hold: bool) -> Result<()> {
        self.registry.pool_hold_promotion(pool, hold)
    }

    /// Sets the fill levels that raise warnings.
    ///
    /// # Errors
    /// As the engine's.
    pub fn warn_at(&self, pool: &str, request: &v1::PoolWarnings) -> Result<v1::Pool> {
        self.registry
            .pool_warn_at(pool, &request.at)
            .map(|status| self.shown(status))
    }

    /// Changes the promotion budget of a pool.
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
