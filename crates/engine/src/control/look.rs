//! A pool and its volumes at one moment.

use super::qos::QosGroup;
use super::spread::{IoSpread, SourceTimes};
use super::types::{IoCounters, PoolStatus, VolumeStatus};

/// A volume at a moment.
#[derive(Clone, Debug)]
pub struct VolumeLook {
    /// Its state.
    pub status: VolumeStatus,
    /// Its statistics since the pool was opened.
    pub counters: IoCounters,
    /// How its reads and writes are spread since then.
    pub spread: IoSpread,
    /// How long its reads took since then, by where blocks came from.
    pub sources: SourceTimes,
}

/// Statistics of an export.
#[derive(Clone, Debug, Default)]
pub struct ExportLook {
    /// Its name.
    pub name: String,
    /// Operations since the pool was opened; where blocks came from is not told apart.
    pub counters: IoCounters,
    /// How its reads and writes are spread since then.
    pub spread: IoSpread,
}

/// A pool at a moment.
#[derive(Clone, Debug)]
pub struct PoolLook {
    /// Its state.
    pub status: PoolStatus,
    /// Its statistics since it was opened.
    pub counters: IoCounters,
    /// Its snapshots.
    pub snapshots: usize,
    /// Its volumes, but for those that are being deleted, in the order in which they were made.
    pub volumes: Vec<VolumeLook>,
    /// Its groups of volumes that share a policy.
    pub groups: Vec<QosGroup>,
    /// Its exports that volumes were opened by.
    pub exports: Vec<ExportLook>,
}
