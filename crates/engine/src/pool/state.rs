//! An open pool, and the state that all parts of `pool` share.

use super::tails::Tails;
use super::{
    AllInitiators, AllSettings, AllTenants, Allowances, Exported, Keeper, PoolDrive, ShardHandle,
};
use crate::control::Jobs;
use crate::control::types::{EngineError, ErrorCode};
use crate::device::VolumeDevice;
use crate::shard::{PoolShared, Progress, Scrub};
use crate::vdrive::Members;
use format::PoolConfig;
use reactor::Remote;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{DriveId, PoolId};

pub(crate) type Result<T> = std::result::Result<T, EngineError>;

/// An open pool.
pub struct Pool {
    /// Its id.
    pub id: PoolId,
    /// Its name.
    pub name: String,
    pub(crate) shared: Arc<PoolShared>,
    pub(crate) config: Arc<Mutex<PoolConfig>>,
    pub(crate) pool_drives: Arc<Mutex<Vec<PoolDrive>>>,
    pub(crate) members: Arc<Members>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) shards: Vec<ShardHandle>,
    /// Remaining space of volumes with quotas.
    pub(crate) allowances: Mutex<Allowances>,
    /// The settings of volumes that have some.
    pub(crate) settings: Mutex<AllSettings>,
    /// The volumes that have policies.
    pub(crate) tenants: Mutex<AllTenants>,
    /// Initiators that have volumes open.
    pub(crate) initiators: Mutex<AllInitiators>,
    /// The exports that volumes were opened by.
    pub(crate) exported: Mutex<Exported>,
    pub(crate) devices: Mutex<BTreeMap<u32, Arc<VolumeDevice>>>,
    /// The tails of its shards' journals.
    pub(super) tails: Tails,
    /// The loop that labels are read and written on.
    pub(crate) remote: Remote,
    pub(crate) jobs: Arc<Jobs>,
    /// Drives that are being resynced: progress, and total bytes.
    pub(crate) resyncs: Mutex<BTreeMap<DriveId, (Arc<Progress>, u64)>>,
    /// One change of the pool's description at a time.
    pub(crate) changing: Mutex<()>,
    /// Numbers under which shards know opened snapshots, by the snapshots' layers, and the last one.
    pub(crate) readers: Mutex<(BTreeMap<u32, u32>, u32)>,
    /// Whether unreferenced layers are being reclaimed.
    pub(crate) reaping: Mutex<bool>,
    /// The running scrub, or the last one since the pool was opened.
    pub(crate) scrub: Mutex<Arc<Scrub>>,
}

impl Pool {
    /// The pool's present description.
    pub(crate) fn config(&self) -> PoolConfig {
        lock(&self.config).clone()
    }
}

/// Locks; a panic elsewhere does not make the data unusable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn error<T>(code: ErrorCode, message: impl Into<String>) -> Result<T> {
    Err(EngineError::new(code, message))
}
