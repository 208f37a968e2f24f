//! Diagnosis of a volume's latency: why it is, or was, slow (docs/how-to.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a volume is slow. `slow`: it misses its latency target, or without one is above 1 ms on
/// average, above 20 ms at p99, twice as slow as usual, or held back by a policy; `not_slow`;
/// `unknown`: there are too few I/Os or no records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyVerdict {
    /// The volume is slow.
    Slow,
    /// The volume is not slow.
    NotSlow,
    /// There are too few I/Os or no records.
    Unknown,
}

/// Cause of latency. `policy_limit`: the maximum of its own policy; `other_volumes`: volumes that
/// quality of service served first; `slow_tier_reads`: data that neither RAM nor the fast tier had;
/// `slow_tier_queue`: waiting for the slow tier's drives; `fast_tier_reads`; `writes`: the drives
/// that writes go to; `write_queue`: waiting before these; `fast_tier_full`: a fast tier full of
/// dirty data; `drive_slow`; `drive_failing`; `background_work`: a scrub, resync or evacuation;
/// `pool_full`; `pool_failed`; `other`: the engine itself, for example loading maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyCause {
    /// The maximum of its own policy.
    PolicyLimit,
    /// Volumes that quality of service served first.
    OtherVolumes,
    /// Reads of data that neither RAM nor the fast tier had.
    SlowTierReads,
    /// Waiting for the slow tier's drives.
    SlowTierQueue,
    /// Reads from the fast tier.
    FastTierReads,
    /// The drives that writes go to.
    Writes,
    /// Waiting of writes before they reach a drive.
    WriteQueue,
    /// A fast tier full of dirty data.
    FastTierFull,
    /// A drive that is slower than its peers or than usual.
    DriveSlow,
    /// A drive that fails requests, or is missing.
    DriveFailing,
    /// A scrub, resync or evacuation.
    BackgroundWork,
    /// The pool is full, or nearly.
    PoolFull,
    /// The pool cannot serve all of its data.
    PoolFailed,
    /// The engine itself, for example loading maps.
    Other,
}

/// A recommended action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyAction {
    /// What to do, as a sentence.
    pub text: String,
    /// The command for it, if one exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A cause of the latency, with its evidence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyFinding {
    /// The cause.
    pub cause: WhyCause,
    /// The cause in words.
    pub title: String,
    /// Share of the mean latency that it explains, in percent; absent where it cannot be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
    /// Latency that it explains, in microseconds an I/O on average; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_us: Option<f64>,
    /// Figures that show it.
    pub evidence: Vec<String>,
    /// What to do; empty if nothing.
    pub actions: Vec<WhyAction>,
}

/// Load and latency of a volume in the examined time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyLoad {
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes read and written per second.
    pub bandwidth: f64,
    /// Mean latency of reads and writes in microseconds, with waits for policies.
    pub mean_us: f64,
    /// p99 latency of reads in microseconds, without waits for policies; absent without reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_p99_us: Option<f64>,
    /// p99 latency of writes, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_p99_us: Option<f64>,
    /// Mean latency of the day before, in microseconds; absent without I/O in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_us: Option<f64>,
}

/// Why a volume is, or was, slow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The volume, as POOL/VOLUME.
    pub volume: String,
    /// Start of the examined time, in seconds since 1970.
    pub from_s: u64,
    /// Its end (exclusive).
    pub to_s: u64,
    /// The examined time includes now: figures that are not recorded were used as well.
    pub live: bool,
    /// Whether it is slow.
    pub verdict: WhyVerdict,
    /// The answer in a sentence.
    pub headline: String,
    /// Load and latency; absent if nothing is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<WhyLoad>,
    /// Causes, by the latency that they explain; those without a figure last, except a failed pool.
    pub findings: Vec<WhyFinding>,
    /// What could not be examined, and why.
    pub missing: Vec<String>,
}
