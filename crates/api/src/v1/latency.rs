//! How long reads took, by where blocks came from.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Reads of a pool or a volume since the pool was opened, by how long they took. What was answered from memory counts by
/// operations, what drives were read for by stretches of blocks that lie together, with the wait for their turn.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Latency {
    /// Bounds of times in nanoseconds, rising.
    pub bounds_ns: Vec<u64>,
    /// From the engine's memory, or of what was never written.
    pub ram: SourceLatency,
    /// From the fast tier.
    pub fast: SourceLatency,
    /// From the slow tier.
    pub slow: SourceLatency,
}

/// Reads from one source.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SourceLatency {
    /// As many as took no longer than a bound, and longer than the one before; at the end those that took longer than all.
    pub counts: Vec<u64>,
    /// Nanoseconds, summed.
    pub ns: u64,
    /// Seconds that half of them did not exceed; nothing without any. Percentiles are of the bounds, with a straight line
    /// between two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<f64>,
    /// The same of 99 in 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
    /// The same of 999 in 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_s: Option<f64>,
}
