//! Performance history (docs/events.md#history).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A metric over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySeries {
    /// Name of the metric.
    pub name: String,
    /// Unit: `1/s`, `B/s`, `B`, `s`, `ratio` (0 to 1), or empty.
    pub unit: String,
    /// One value per step, oldest first; null if unknown: the daemon did not run, or the mean is
    /// undefined because there were no operations.
    pub values: Vec<Option<f64>>,
}

/// History of an object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// The object, as in the request.
    pub object: String,
    /// Start of the first step, in seconds since 1970.
    pub from_s: u64,
    /// Length of a step in seconds; each value is the mean over its step.
    pub step_s: u64,
    /// The metrics.
    pub series: Vec<HistorySeries>,
    /// Histograms over all operations from the first step to the last; for vdrives and drives, over
    /// the requests to them. Absent if none were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spreads: Option<HistorySpreads>,
}

/// Histograms of latency and size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySpreads {
    /// Upper bounds of the latency buckets, in seconds.
    pub time_bounds: Vec<f64>,
    /// Upper bounds of the size buckets, in bytes.
    pub size_bounds: Vec<u64>,
    /// Reads.
    pub reads: HistorySpread,
    /// Writes.
    pub writes: HistorySpread,
}

/// Histograms of reads or writes. Counts above 255 are accurate to one part in 256.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySpread {
    /// Operations by latency: one count per bound, and one for those above the last bound.
    pub times: Vec<u64>,
    /// Operations by size, likewise.
    pub sizes: Vec<u64>,
}
