//! What outlives an engine in memory.

use engine::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Clone, Default)]
pub struct StoredPool {
    pub id: String,
    pub drives: Vec<String>,
    pub mirrored: bool,
    /// Generation of its newest label.
    pub generation: u64,
    pub volumes: BTreeMap<String, VolumeSpec>,
    pub exports: Vec<ExportRecord>,
    pub scrub: ScrubStatus,
    pub snapshots: Vec<SnapshotStatus>,
    pub schedules: Vec<ScheduleStatus>,
    pub used: u64,
    pub warn_at: Vec<u8>,
    pub anchor: Option<String>,
    pub wear: WearStatus,
    /// When what was written was kept.
    pub wear_kept: Vec<u64>,
    pub budget: Option<BudgetStatus>,
    /// The snapshot that a volume receives, and how far it is.
    pub receiving: String,
    pub received: u64,
    /// Bytes of the RAM tier, and how many there may be.
    pub ram: (u64, u64),
    /// Maps of its volumes that were looked at, and bytes of each part that are on the fast tier.
    pub looks: u64,
    pub fast: u64,
    /// What is otherwise about its status.
    pub alter: Option<fn(&mut PoolStatus)>,
}

impl StoredPool {
    pub fn keep_anchor(&mut self, anchor: &str) -> Result<(), EngineError> {
        self.anchor = Some(anchor.to_owned());
        Ok(())
    }
}

/// What outlives an engine: the pools on their drives, and which drives are away.
#[derive(Default)]
pub struct World {
    pub stored: Mutex<BTreeMap<String, StoredPool>>,
    pub away: Mutex<BTreeSet<String>>,
    pub full: AtomicBool,
    /// What is otherwise about the job.
    pub alter_job: Mutex<Option<fn(&mut JobStatus)>>,
    /// Looks at all pools.
    pub looks: AtomicUsize,
    /// While somebody holds it, looks at all pools wait.
    pub gate: Mutex<()>,
    /// What volumes did, by their names.
    pub did: Mutex<BTreeMap<String, (IoCounters, IoSpread)>>,
    /// What is expected of every volume.
    pub expected: Mutex<Targets>,
    /// What every volume attained of its policy, if it has one.
    pub attained: Mutex<Option<VolumeQos>>,
    /// The groups of every pool.
    pub groups: Mutex<Vec<QosGroup>>,
    /// Some volume was written to and not flushed since.
    pub unflushed: Arc<AtomicBool>,
    /// For whom volumes were opened.
    pub opened_by: Mutex<Vec<Option<String>>>,
}

impl World {
    pub fn pools(&self) -> MutexGuard<'_, BTreeMap<String, StoredPool>> {
        self.stored.lock().unwrap()
    }

    pub fn take_away(&self, drive: &str) {
        self.away.lock().unwrap().insert(drive.to_owned());
    }

    pub fn missing(&self, pool: &StoredPool) -> Vec<String> {
        let away = self.away.lock().unwrap();
        let gone = pool.drives.iter().filter(|drive| away.contains(*drive));
        gone.cloned().collect()
    }
}
