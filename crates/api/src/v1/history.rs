//! How something did over time (docs/events.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One figure over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistorySeries {
    /// Its name.
    pub name: String,
    /// Its unit: `1/s`, `B/s`, `B`, `s` or nothing.
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
}
