//! How something did over time (docs/events.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One figure over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySeries {
    /// Its name.
    pub name: String,
    /// Its unit: `1/s`, `B/s`, `B`, `s`, `ratio` (0 to 1) or nothing.
    pub unit: String,
    /// A value for each step, oldest first; nothing where none is known: the daemon did not run, or there is no mean of
    /// what did not happen.
    pub values: Vec<Option<f64>>,
}

/// How something did over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// Of what.
    pub object: String,
    /// Where the first step begins: seconds since 1970.
    pub from_s: u64,
    /// Seconds of a step; what is told of it is the mean over it.
    pub step_s: u64,
    /// The figures.
    pub series: Vec<HistorySeries>,
    /// All operations from the first step to the last, where some were counted: of vdrives and drives the requests to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spreads: Option<HistorySpreads>,
}

/// How operations are spread over times and sizes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySpreads {
    /// Bounds of times, in seconds.
    pub time_bounds: Vec<f64>,
    /// Bounds of sizes, in bytes.
    pub size_bounds: Vec<u64>,
    /// Reads.
    pub reads: HistorySpread,
    /// Writes.
    pub writes: HistorySpread,
}

/// Operations of one kind. Counts above 255 are right to one part in 256.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySpread {
    /// By times: not longer than each bound and longer than the one before, and at the end those beyond the last.
    pub times: Vec<u64>,
    /// By sizes, in the same way.
    pub sizes: Vec<u64>,
}
