//! What is known about a volume in the examined time. Rates are per second, latencies in
//! nanoseconds.

use api::v1::EventCode;
use engine::Tier;

/// All that an answer is derived from.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Pool of the volume.
    pub pool: String,
    /// Name of the volume.
    pub volume: String,
    /// The examined time: from, and to (exclusive), in seconds since 1970.
    pub window: (u64, u64),
    /// The examined time includes now: what is not recorded is known, too.
    pub is_live: bool,
    /// Load of the volume; nothing if none is recorded.
    pub load: Option<Load>,
    /// Mean latency of the day before.
    pub usual_ns: Option<f64>,
    /// Latency that 99 of 100 I/Os should not exceed, by the volume's target or its policy.
    pub target_ns: Option<f64>,
    /// Its policy; only if live.
    pub policy: Option<PolicySeen>,
    /// Measured read time by tier; only if live, else it is estimated.
    pub sources: Option<Sources>,
    /// The fast tier; nothing if the pool has none.
    pub fast: Option<TierLoad>,
    /// The slow tier, likewise.
    pub slow: Option<TierLoad>,
    /// I/Os of all volumes of the pool.
    pub pool_iops: f64,
    /// Drives of the pool.
    pub drives: Vec<DriveLoad>,
    /// Background work in that time.
    pub work: Vec<Work>,
    /// Placement; only if live.
    pub placement: Option<PlacementSeen>,
    /// Alerts of the pool that were open in that time.
    pub alerts: Vec<AlertSeen>,
}

impl Evidence {
    /// The volume, as POOL/VOLUME.
    pub fn name(&self) -> String {
        format!("{}/{}", self.pool, self.volume)
    }

    /// The tier that writes go to.
    pub fn written(&self) -> Option<&TierLoad> {
        self.fast.as_ref().or(self.slow.as_ref())
    }
}

/// Load of the volume. Latencies are below the gate: waits for policies are separate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Seconds with records.
    pub seconds: f64,
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// Mean latency of reads.
    pub read_ns: f64,
    /// Mean latency of writes.
    pub write_ns: f64,
    /// p99 latency of reads.
    pub read_p99_ns: Option<f64>,
    /// p99 latency of writes.
    pub write_p99_ns: Option<f64>,
    /// Bytes read from RAM, the fast tier, the slow tier, and of blocks never written.
    pub read_from: [f64; 4],
    /// Mean number of I/Os that waited for the maximum of the volume's policy; nothing if it is not
    /// recorded.
    pub limit_wait: Option<f64>,
    /// Mean number of I/Os that waited for volumes served first, likewise.
    pub share_wait: Option<f64>,
    /// Bytes promoted to the fast tier.
    pub promoted: f64,
}

impl Load {
    /// Reads and writes.
    pub fn iops(&self) -> f64 {
        self.reads + self.writes
    }

    /// Share of the read data that came from RAM, the fast and the slow tier and never-written
    /// blocks, 0 to 1.
    pub fn shares(&self) -> [f64; 4] {
        let all: f64 = self.read_from.iter().sum();
        self.read_from
            .map(|bytes| if all > 0.0 { bytes / all } else { 0.0 })
    }
}

/// The policy of the volume.
#[derive(Clone, Debug, Default)]
pub struct PolicySeen {
    /// Name of the policy.
    pub name: String,
    /// It cannot be changed.
    pub is_built_in: bool,
    /// Group whose volumes share its limits.
    pub group: Option<String>,
    /// Maximum I/Os; 0: no limit.
    pub max_iops: u64,
    /// Maximum bytes, likewise.
    pub max_bandwidth: u64,
    /// Volumes and groups that were served meanwhile: name and percent.
    pub held_for: Vec<(String, u64)>,
}

/// Read time by tier: nanoseconds and reads, over about the examined time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources {
    /// From RAM.
    pub ram: (f64, f64),
    /// From the fast tier, with the wait for a turn.
    pub fast: (f64, f64),
    /// From the slow tier, likewise.
    pub slow: (f64, f64),
    /// Nanoseconds that all reads took.
    pub read_ns: f64,
}

/// Load of the drives of a tier.
#[derive(Clone, Copy, Debug, Default)]
pub struct TierLoad {
    /// Requests to its drives.
    pub reads: f64,
    /// Requests to its drives.
    pub writes: f64,
    /// Bytes read from and written to its drives.
    pub bytes: f64,
    /// Mean latency of a drive's read; 0 for drives in memory.
    pub read_ns: f64,
    /// Mean latency of a drive's write, likewise.
    pub write_ns: f64,
    /// Usable bytes.
    pub capacity: f64,
    /// Used bytes; with clean copies.
    pub used: Option<f64>,
    /// Dirty bytes; only of the fast tier.
    pub dirty: Option<f64>,
}

/// Load of a drive.
#[derive(Clone, Debug)]
pub struct DriveLoad {
    /// Its specification.
    pub spec: String,
    /// Number of its vdrive.
    pub vdrive: u8,
    /// Its tier.
    pub tier: Tier,
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Mean latency of reads.
    pub read_ns: f64,
    /// Mean latency of writes.
    pub write_ns: f64,
    /// Failed requests.
    pub errors: f64,
    /// The engine reports it as slower than usual; only if live.
    pub is_slow: bool,
}

/// A background job.
#[derive(Clone, Debug)]
pub struct Work {
    /// Number of the job.
    pub job: u64,
    /// Its kind: `scrub`, `resync`, ...
    pub kind: String,
    /// Its subject.
    pub subject: String,
    /// Bytes a second.
    pub rate: f64,
    /// It runs now.
    pub is_running: bool,
}

/// Placement of the volume's data.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementSeen {
    /// A user paused promotion in the pool.
    pub is_held: bool,
    /// Promotion is disabled for the volume.
    pub is_off: bool,
    /// Maximum bytes on the fast tier; 0: no limit.
    pub ceiling: u64,
    /// Bytes on the fast tier.
    pub fast: u64,
    /// Working set of the pool in bytes, as far as it is known.
    pub working_set: Option<u64>,
    /// Forecast hit ratio of the pool, 0 to 1: now, and with twice the fast tier.
    pub hits: Option<(f64, f64)>,
}

/// An alert.
#[derive(Clone, Debug)]
pub struct AlertSeen {
    /// Its code.
    pub code: EventCode,
    /// Its subject's name.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub advice: String,
}
