//! State that outlives a fake engine.

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
    /// When wear was stored.
    pub wear_kept: Vec<u64>,
    pub budget: Option<BudgetStatus>,
    /// The snapshot being received, and the progress.
    pub receiving: String,
    pub received: u64,
    /// Present and maximum size of the RAM tier, in bytes.
    pub ram: (u64, u64),
    /// Number of map queries, and bytes per cell on the fast tier.
    pub looks: u64,
    pub fast: u64,
    /// Modification of its status.
    pub alter: Option<fn(&mut PoolStatus)>,
}

impl StoredPool {
    pub fn keep_anchor(&mut self, anchor: &str) -> Result<(), EngineError> {
        self.anchor = Some(anchor.to_owned());
        Ok(())
    }
}

/// State that outlives an engine: the pools on their drives, and missing drives.
#[derive(Default)]
pub struct World {
    pub stored: Mutex<BTreeMap<String, StoredPool>>,
    pub away: Mutex<BTreeSet<String>>,
    pub full: AtomicBool,
    /// Modification of the job.
    pub alter_job: Mutex<Option<fn(&mut JobStatus)>>,
    /// Number of status queries.
    pub looks: AtomicUsize,
    /// Blocks status queries while held.
    pub gate: Mutex<()>,
    /// Counters of volumes, by name.
    pub did: Mutex<BTreeMap<String, (IoCounters, IoSpread)>>,
    /// Performance targets of every volume.
    pub expected: Mutex<Targets>,
    /// What every volume with a policy attained.
    pub attained: Mutex<Option<VolumeQos>>,
    /// Groups of every pool.
    pub groups: Mutex<Vec<QosGroup>>,
    /// Whether any volume was written to and not flushed since.
    pub unflushed: Arc<AtomicBool>,
    /// Initiators for which volumes were opened.
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
