//! Which pools are open and which should be: the list for the next start, and the lock for changes
//! of either.
//!
//! All parts call the engine through the registry: an error about a pool that should be open is
//! replaced by the reason why it is not.

use super::Result;
use crate::control::{Control, PoolCalls};
use crate::mapping::ToApi;
use crate::state::{KnownPool, StateDir};
use crate::sync::lock;
use api::v1::{AbsentPool, Problem};
use engine::{EngineError, ErrorCode, PoolStatus};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A pool that should be open but is not.
#[derive(Clone)]
struct Absent {
    pool: AbsentPool,
    /// Latest label generation that this host has seen of it; 0: none.
    generation: u64,
}

impl Absent {
    fn is(&self, pool: &str) -> bool {
        self.pool.name == pool || self.pool.id == pool
    }
}

/// The pools of this host.
pub struct PoolRegistry {
    control: Arc<dyn Control>,
    state: StateDir,
    /// Locked briefly, after `changes`.
    absent: Mutex<Vec<Absent>>,
    /// Held by every change of open pools or exports, from its first check to its last step.
    changes: Mutex<()>,
    /// Set before the engine stops: from then on the engine's report of open pools is meaningless.
    stopped: AtomicBool,
}

fn specs(pool: &PoolStatus) -> Vec<String> {
    pool.vdrives
        .iter()
        .flat_map(|vdrive| vdrive.drives.iter().map(|drive| drive.spec.clone()))
        .collect()
}

impl PoolCalls for PoolRegistry {
    fn control(&self) -> &Arc<dyn Control> {
        &self.control
    }

    /// The engine's error, or the reason why the pool is not open.
    fn problem(&self, pool: &str, error: EngineError) -> Problem {
        match self.absent(pool) {
            Some(absent) if error.code == ErrorCode::NotFound => Problem::not_found(absent.message),
            _ => error.to_api(),
        }
    }
}

impl PoolRegistry {
    /// A registry without absent pools.
    pub(super) fn new(control: Arc<dyn Control>, state: StateDir) -> Self {
        Self {
            control,
            state,
            absent: Mutex::default(),
            changes: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// The state folder.
    pub(super) fn state(&self) -> &StateDir {
        &self.state
    }

    /// Excludes other changes of open pools or exports until it is dropped.
    pub(super) fn begin_change(&self) -> MutexGuard<'_, ()> {
        lock(&self.changes)
    }

    /// Records that the engine is about to stop.
    pub(super) fn note_stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether the engine has begun to stop. To be checked after a call of the engine: if it has
    /// not, the result was that of a running engine.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// The name of one pool, or of all open ones.
    pub(super) fn one_or_all(&self, pool: Option<&str>) -> Result<Vec<String>> {
        match pool {
            Some(pool) => Ok(vec![pool.to_owned()]),
            None => {
                let open = self.control.pool_list().map_err(ToApi::to_api)?;
                Ok(open.into_iter().map(|pool| pool.name).collect())
            }
        }
    }

    /// Records that a pool could not be opened, and why.
    pub(super) fn add_absent(&self, known: KnownPool, message: String) {
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

    /// A pool that should be open but is not, by its name or id.
    pub(super) fn absent(&self, pool: &str) -> Option<AbsentPool> {
        let absent = lock(&self.absent);
        let found = absent.iter().find(|known| known.is(pool));
        found.map(|known| known.pool.clone())
    }

    /// Latest label generation that this host has seen of an absent pool; 0: none.
    pub(super) fn seen(&self, pool: &str) -> u64 {
        let absent = lock(&self.absent);
        let found = absent.iter().find(|known| known.is(pool));
        found.map_or(0, |known| known.generation)
    }

    /// Pools that should be open but are not.
    pub(super) fn absent_pools(&self) -> Vec<AbsentPool> {
        let absent = lock(&self.absent);
        absent.iter().map(|absent| absent.pool.clone()).collect()
    }

    /// Removes a pool from the absent ones.
    pub(super) fn forget(&self, id: &str) {
        lock(&self.absent).retain(|known| known.pool.id != id);
    }

    /// The same, and stores the list; the pool stays absent if that fails.
    pub(super) fn forget_and_save(&self, id: &str) -> io::Result<()> {
        let before = lock(&self.absent).clone();
        self.forget(id);
        self.save().inspect_err(|_| *lock(&self.absent) = before)
    }

    /// Stores the pools that are open or should be, for the next start.
    pub(super) fn save(&self) -> io::Result<()> {
        let open = self.control.pool_list().map_err(io::Error::other)?;
        if self.has_stopped() {
            return Err(io::Error::other("the daemon is stopping"));
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

    /// The same; a failure only causes a wrong message at the next start.
    pub(super) fn try_save(&self) {
        if let Err(error) = self.save() {
            tracing::error!("cannot store the list of open pools: {error}");
        }
    }

    /// Updates the list while jobs remove vdrives from pools.
    pub fn refresh(&self) {
        let _changes = self.begin_change();
        if !self.has_stopped() {
            self.try_save();
        }
    }

    /// Checks whether the state folder is writable.
    pub fn probe_state(&self) {
        self.state.files().probe();
    }
}
