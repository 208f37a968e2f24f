//! Live data: samples once a second (docs/access.md).

use super::{Counters, Job};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Current state of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LivePool {
    /// Name of the pool.
    pub name: String,
    /// State, as in a pool.
    pub state: String,
    /// Counters since the pool was opened.
    pub counters: Counters,
    /// Stored bytes, without clean copies.
    pub used: u64,
    /// Dirty bytes on the fast tier.
    pub fast_dirty: u64,
    /// Bytes of clean copies on the fast tier.
    pub fast_shadow: u64,
    /// Used bytes of the RAM cache.
    pub ram_bytes: u64,
}

/// Current activity of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LiveVolume {
    /// Pool of the volume.
    pub pool: String,
    /// Name of the volume.
    pub name: String,
    /// Counters since the pool was opened: reads, writes, bytes read, bytes written, sum of read
    /// latencies in nanoseconds, sum of write latencies in nanoseconds.
    pub did: [u64; 6],
}

/// A quality-of-service policy in use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LivePolicy {
    /// Pool of the policy.
    pub pool: String,
    /// Name of the policy.
    pub name: String,
    /// Service level.
    pub level: u8,
    /// Volumes with this policy, of their own or through a group.
    pub volumes: u64,
    /// Guaranteed IOPS: sum of the minimums of all these volumes and groups.
    pub promised_iops: u64,
    /// Counters of these volumes since the pool was opened: completed operations, operations queued
    /// at the gate, operations that exceeded the maximum latency, windows of 100 ms in which the
    /// guarantee was needed, and windows in which it was met.
    pub did: [u64; 5],
}

/// Changes since the previous event; the first event is complete.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LiveState {
    /// Time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The state is complete: objects that it does not contain are gone.
    pub whole: bool,
    /// Increases with each change by a user: lists should then be loaded again.
    pub changes: u64,
    /// Pools that changed.
    pub pools: Vec<LivePool>,
    /// Volumes with I/O; of very many, the busiest ones.
    pub volumes: Vec<LiveVolume>,
    /// Policies in use of all pools; absent if none of them changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<LivePolicy>>,
    /// All jobs; absent if none of them changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<Job>>,
}

/// Map of a volume by tier, or its changes since the previous event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LiveMap {
    /// `POOL/VOLUME`.
    pub volume: String,
    /// Size of the volume in bytes.
    pub size: u64,
    /// Start of the mapped range in bytes.
    pub start: u64,
    /// Length of the mapped range in bytes; it is divided into `cells` equal cells.
    pub length: u64,
    /// Number of cells.
    pub cells: u32,
    /// Four hexadecimal digits per cell, in order: shares in RAM, on the fast and on the slow tier,
    /// in fifteenths, rounded up (0: none), and the accesses as in a map. Absent if only `changed`
    /// is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// Eight hexadecimal digits per changed cell: its number, then the four digits as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}
