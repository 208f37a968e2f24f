//! Which pools are open and which should be: the list for the next start, and the lock of changes to either.
//!
//! Every part that asks the engine stands on this one: an error of the engine about a pool becomes the reason why that
//! pool is not open, where it should be.

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

/// A pool that should be open and is not.
#[derive(Clone)]
struct Absent {
    pool: AbsentPool,
    /// Generation of a label that this host has seen of it; 0: none.
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
    /// Locked for a look or a push only, after `changes`.
    absent: Mutex<Vec<Absent>>,
    /// Held by whatever changes which pools are open or what is exported, from its first check to its last step.
    changes: Mutex<()>,
    /// Set before the engine stops: what is seen of pools from then on is no state of theirs.
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

    /// The engine's error, or why the pool is not open.
    fn problem(&self, pool: &str, error: EngineError) -> Problem {
        match self.absent(pool) {
            Some(absent) if error.code == ErrorCode::NotFound => Problem::not_found(absent.message),
            _ => error.to_api(),
        }
    }
}

impl PoolRegistry {
    /// A registry with nothing absent.
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

    /// Keeps other changes of which pools are open or what is exported out, until it is dropped.
    pub(super) fn begin_change(&self) -> MutexGuard<'_, ()> {
        lock(&self.changes)
    }

    /// Notes that the engine is about to stop.
    pub(super) fn note_stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether the engine stops or has stopped. Asked after the engine was, this says whether the answer can be one of an
    /// engine without its pools.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// The name of one pool, or of all that are open.
    pub(super) fn one_or_all(&self, pool: Option<&str>) -> Result<Vec<String>> {
        match pool {
            Some(pool) => Ok(vec![pool.to_owned()]),
            None => {
                let open = self.control.pool_list().map_err(ToApi::to_api)?;
                Ok(open.into_iter().map(|pool| pool.name).collect())
            }
        }
    }

    /// Notes that a pool could not be opened, and why.
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

    /// A pool that should be open and is not, by its name or id.
    pub(super) fn absent(&self, pool: &str) -> Option<AbsentPool> {
        let absent = lock(&self.absent);
        let found = absent.iter().find(|known| known.is(pool));
        found.map(|known| known.pool.clone())
    }

    /// Generation of a label that this host has seen of a pool that is not open; 0: none.
    pub(super) fn seen(&self, pool: &str) -> u64 {
        let absent = lock(&self.absent);
        let found = absent.iter().find(|known| known.is(pool));
        found.map_or(0, |known| known.generation)
    }

    /// The pools that should be open and are not.
    pub(super) fn absent_pools(&self) -> Vec<AbsentPool> {
        let absent = lock(&self.absent);
        absent.iter().map(|absent| absent.pool.clone()).collect()
    }

    /// A pool with this id is no longer absent.
    pub(super) fn forget(&self, id: &str) {
        lock(&self.absent).retain(|known| known.pool.id != id);
    }

    /// The same, kept for the next start; it is absent still when that cannot be written.
    pub(super) fn forget_and_save(&self, id: &str) -> io::Result<()> {
        let before = lock(&self.absent).clone();
        self.forget(id);
        self.save().inspect_err(|_| *lock(&self.absent) = before)
    }

    /// Keeps what is open, and what should be, for the next start.
    pub(super) fn save(&self) -> io::Result<()> {
        let open = self.control.pool_list().map_err(io::Error::other)?;
        if self.has_stopped() {
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

    /// The same; what cannot be written is a wrong message at the next start, no more.
    pub(super) fn try_save(&self) {
        if let Err(error) = self.save() {
            tracing::error!("the list of open pools cannot be written: {error}");
        }
    }

    /// Keeps the list right while jobs take vdrives out of pools.
    pub fn refresh(&self) {
        let _changes = self.begin_change();
        if !self.has_stopped() {
            self.try_save();
        }
    }

    /// Checks whether the state folder takes what is to be kept.
    pub fn probe_state(&self) {
        self.state.files().probe();
    }
}
