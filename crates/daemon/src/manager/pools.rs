//! Pools: opened again after a restart, and kept on the list for the next one.

use super::core::{Manager, Result, check_name, lock};
use crate::clock::now_s;
use crate::mapping::{ToApi, ToEngine};
use crate::state::KnownPool;
use api::v1::{self, AbsentPool, Problem, ProblemCode};
use engine::{EngineError, ErrorCode, ImportOptions, MissingDrives, PoolStatus};
use std::io;

fn specs(pool: &PoolStatus) -> Vec<String> {
    pool.vdrives
        .iter()
        .flat_map(|vdrive| vdrive.drives.iter().map(|drive| drive.spec.clone()))
        .collect()
}

/// A pool that should be open and is not.
#[derive(Clone)]
pub(super) struct Absent {
    pub pool: AbsentPool,
    /// Generation of a label that this host has seen of it; 0: none.
    pub generation: u64,
}

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

impl Manager {
    /// Opens the pools that were open when the last daemon ended, and those that lie complete on
    /// `drives`, and starts their exports. What cannot be opened is logged and listed as absent;
    /// the rest is served. What of the state folder cannot be read or written is noted, and done without.
    ///
    /// # Errors
    /// When an alert target of the configuration cannot be.
    pub fn start(&self, drives: &[String]) -> std::result::Result<(), crate::ServeError> {
        let _changes = lock(&self.changes);
        self.access.load();
        self.events.load();
        let newest = self.events.newest();
        self.targets.load(&self.configured_targets, newest)?;
        self.servers.load();
        self.history.load(now_s());
        self.jobs.load(now_s());
        self.note_start(now_s());
        for known in self.state.load() {
            self.open_known(known);
        }
        if !drives.is_empty() {
            self.open_found(drives);
        }
        if let Err(error) = self.remember() {
            tracing::error!("the list of open pools cannot be written: {error}");
        }
        Ok(())
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
                self.check_anchor(&status.name);
                self.start_exports(&status.name);
            }
            Err(why) => {
                let message = format!(
                    "pool {} is not open: {why}; once that is mended, open it with `convect pool \
                     import {} --drive SPEC...`, or forget it with `convect pool export {}`",
                    known.name, known.name, known.name
                );
                tracing::error!("{message}");
                lock(&self.absent).push(Absent {
                    pool: AbsentPool {
                        id: known.id,
                        name: known.name,
                        drives: known.drives,
                        message,
                    },
                    generation: known.generation,
                });
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
        let known: Vec<String> = lock(&self.absent)
            .iter()
            .map(|absent| absent.pool.id.clone())
            .collect();
        for pool in found.into_iter().filter(|pool| !known.contains(&pool.id)) {
            self.open_known(KnownPool {
                id: pool.id,
                name: pool.name,
                drives: pool.found,
                generation: 0,
            });
        }
    }

    /// Keeps what is open, and what should be, for the next start.
    pub(super) fn remember(&self) -> io::Result<()> {
        let open = self.control.pool_list().map_err(io::Error::other)?;
        if self.has_ended() {
            return Err(io::Error::other("the daemon ends"));
        }
        let mut pools: Vec<KnownPool> = open
            .into_iter()
            .map(|pool| KnownPool {
                drives: specs(&pool),
                generation: pool.generation,
                id: pool.id,
                name: pool.name,
            })
            .collect();
        pools.extend(lock(&self.absent).iter().map(|absent| KnownPool {
            id: absent.pool.id.clone(),
            name: absent.pool.name.clone(),
            drives: absent.pool.drives.clone(),
            generation: absent.generation,
        }));
        pools.sort_by(|a, b| a.id.cmp(&b.id));
        self.state.save(&pools)
    }

    /// Looks whether the state folder takes what is to be kept.
    pub fn probe_state(&self) {
        self.state.files().probe();
    }

    /// Keeps the list right while jobs take vdrives out of pools.
    pub fn refresh(&self) {
        let _changes = lock(&self.changes);
        if self.has_ended() {
            return;
        }
        if let Err(error) = self.remember() {
            tracing::error!("the list of open pools cannot be written: {error}");
        }
    }

    fn absent(&self, pool: &str) -> Option<AbsentPool> {
        let absent = lock(&self.absent);
        let mut absent = absent.iter().map(|absent| &absent.pool);
        let found = absent.find(|known| known.name == pool || known.id == pool);
        found.cloned()
    }

    /// Generation of a label that this host has seen of a pool that is not open; 0: none.
    fn seen(&self, pool: &str) -> u64 {
        let absent = lock(&self.absent);
        let mut absent = absent.iter();
        let found = absent.find(|known| known.pool.name == pool || known.pool.id == pool);
        found.map_or(0, |known| known.generation)
    }

    /// The pools that should be open and are not.
    pub(super) fn absent_pools(&self) -> Vec<AbsentPool> {
        let absent = lock(&self.absent);
        absent.iter().map(|absent| absent.pool.clone()).collect()
    }

    /// The engine's error, or why the pool is not open.
    pub(super) fn pool_problem(&self, pool: &str, error: EngineError) -> Problem {
        match self.absent(pool) {
            Some(absent) if error.code == ErrorCode::NotFound => {
                Problem::new(ProblemCode::NotFound, absent.message)
            }
            _ => error.to_api(),
        }
    }

    /// The pools.
    ///
    /// # Errors
    /// As the engine's.
    pub fn pool_list(&self) -> Result<v1::PoolList> {
        let open = self.control.pool_list().map_err(ToApi::to_api)?;
        Ok(v1::PoolList {
            items: open.into_iter().map(|pool| self.pool(pool)).collect(),
            absent: self.absent_pools(),
        })
    }

    /// One pool.
    ///
    /// # Errors
    /// When it is not open.
    pub fn pool_show(&self, pool: &str) -> Result<v1::Pool> {
        let status = self.control.pool_status(pool);
        status
            .map(|status| self.pool(status))
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Makes a pool.
    ///
    /// # Errors
    /// As the engine's, or when it could not be opened again after a restart.
    pub fn pool_create(&self, request: v1::PoolCreate) -> Result<v1::Pool> {
        check_name("a pool", &request.name)?;
        let _changes = lock(&self.changes);
        if let Some(absent) = self.absent(&request.name) {
            return Err(Problem::new(
                ProblemCode::Exists,
                format!("the name {} is taken: {}", request.name, absent.message),
            ));
        }
        let status = self
            .control
            .pool_create(&request.to_engine())
            .map_err(ToApi::to_api)?;
        if let Err(error) = self.remember() {
            if let Err(error) = self.control.pool_destroy(&status.name) {
                tracing::error!("pool {} could not be taken back: {error}", status.name);
            }
            return Err(not_kept("making the pool", &error));
        }
        tracing::info!("pool {} was made", status.name);
        Ok(self.pool(status))
    }

    /// The pools on these drives that are not open.
    ///
    /// # Errors
    /// As the engine's.
    pub fn pool_scan(&self, drives: &[String]) -> Result<v1::ImportableList> {
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
    pub fn pool_import(&self, pool: &str, request: &v1::PoolImport) -> Result<v1::Pool> {
        let _changes = lock(&self.changes);
        let options = ImportOptions {
            accept_old: request.accept_old,
            seen: self.seen(pool),
            ..ImportOptions::from(request.degraded)
        };
        let imported = self.control.pool_import(&request.drives, pool, options);
        let status = imported.map_err(ToApi::to_api)?;
        let before = lock(&self.absent).clone();
        lock(&self.absent).retain(|known| known.pool.id != status.id);
        if let Err(error) = self.remember() {
            *lock(&self.absent) = before;
            if let Err(error) = self.control.pool_export(&status.name) {
                tracing::error!("pool {} could not be closed again: {error}", status.name);
            }
            return Err(not_kept("opening the pool", &error));
        }
        tracing::info!("pool {} is open", status.name);
        self.start_exports(&status.name);
        Ok(self.pool(status))
    }

    /// Stops the pool's exports and closes it; one that could not be opened is forgotten.
    ///
    /// # Errors
    /// As the engine's; the exports are started again then.
    pub fn pool_export(&self, pool: &str) -> Result<()> {
        let _changes = lock(&self.changes);
        match self.control.pool_status(pool) {
            Ok(status) => {
                self.stop_exports(&status.name);
                if let Err(error) = self.control.pool_export(&status.name) {
                    self.start_exports(&status.name);
                    return Err(error.to_api());
                }
                tracing::info!("pool {} is closed", status.name);
            }
            Err(error) => {
                let Some(absent) = self.absent(pool) else {
                    return Err(error.to_api());
                };
                lock(&self.absent).retain(|known| known.pool.id != absent.id);
                tracing::info!("pool {} is forgotten", absent.name);
            }
        }
        self.remember_closed()
    }

    /// Forgets a pool and everything in it.
    ///
    /// # Errors
    /// As the engine's, and while volumes of it are exported.
    pub fn pool_destroy(&self, pool: &str) -> Result<()> {
        let _changes = lock(&self.changes);
        let status = self.control.pool_status(pool);
        let status = status.map_err(|error| self.pool_problem(pool, error))?;
        self.check_unused(&status.name, None)?;
        self.control
            .pool_destroy(&status.name)
            .map_err(ToApi::to_api)?;
        tracing::info!("pool {} was destroyed", status.name);
        self.remember_closed()
    }

    /// A closed pool that stays on the list is a wrong message at the next start, no more.
    fn remember_closed(&self) -> Result<()> {
        if let Err(error) = self.remember() {
            tracing::error!("the list of open pools cannot be written: {error}");
        }
        Ok(())
    }

    /// What the pool did.
    ///
    /// # Errors
    /// When it is not open.
    pub fn pool_counters(&self, pool: &str) -> Result<v1::Counters> {
        let counters = self.control.pool_counters(pool);
        counters
            .map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Writes everything back and forgets all clean copies.
    ///
    /// # Errors
    /// As the engine's.
    pub fn pool_cool(&self, pool: &str) -> Result<()> {
        let cooled = self.control.pool_cool(pool);
        cooled.map_err(|error| self.pool_problem(pool, error))
    }

    /// Holds or releases promotion.
    ///
    /// # Errors
    /// When it is not open.
    pub fn pool_hold_promotion(&self, pool: &str, hold: bool) -> Result<()> {
        let held = self.control.pool_hold_promotion(pool, hold);
        held.map_err(|error| self.pool_problem(pool, error))
    }

    /// The pool's vdrives.
    ///
    /// # Errors
    /// When it is not open.
    pub fn vdrive_list(&self, pool: &str) -> Result<v1::VdriveList> {
        Ok(v1::VdriveList {
            items: self.pool_show(pool)?.vdrives,
        })
    }

    /// Adds a vdrive.
    ///
    /// # Errors
    /// As the engine's.
    pub fn vdrive_add(&self, pool: &str, request: v1::VdriveAdd) -> Result<v1::VdriveRef> {
        let _changes = lock(&self.changes);
        let spec = v1::VdriveSpec {
            tier: request.tier,
            layout: request.layout,
            drives: request.drives,
        };
        let added = self
            .control
            .vdrive_add(pool, &spec.to_engine(), request.force);
        let vdrive = added.map_err(|error| self.pool_problem(pool, error))?;
        if let Err(error) = self.remember() {
            tracing::error!(
                "vdrive {vdrive} of pool {pool} is not on the list for the next start: {error}"
            );
        }
        Ok(v1::VdriveRef { vdrive })
    }

    /// Starts to evacuate a vdrive.
    ///
    /// # Errors
    /// As the engine's.
    pub fn vdrive_remove(&self, pool: &str, vdrive: u8) -> Result<v1::JobRef> {
        let started = self.control.vdrive_remove(pool, vdrive);
        started
            .map(|job| self.job_ref(job))
            .map_err(|error| self.pool_problem(pool, error))
    }
}
