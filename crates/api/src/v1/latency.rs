//! Read latency by source.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Read latency histograms of a pool or a volume since the pool was opened, by source. Reads from
/// memory count per operation; reads from drives count per contiguous run of blocks, including
/// queueing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Latency {
    /// Upper bounds of the buckets in nanoseconds, ascending.
    pub bounds_ns: Vec<u64>,
    /// Reads served from memory, and of blocks that were never written.
    pub ram: SourceLatency,
    /// Reads from the fast tier.
    pub fast: SourceLatency,
    /// Reads from the slow tier.
    pub slow: SourceLatency,
}

/// Latency of reads from one source.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SourceLatency {
    /// Reads per bucket: one count per bound, and one for those above the last bound.
    pub counts: Vec<u64>,
    /// Sum of the latencies in nanoseconds.
    pub ns: u64,
    /// Median latency in seconds, interpolated linearly between bounds; absent without reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<f64>,
    /// p99 latency in seconds, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
    /// p99.9 latency in seconds, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_s: Option<f64>,
}
