//! Usage of pools, and forecasts (docs/filling.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Usage levels at which a warning is raised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolWarnings {
    /// Levels in percent: at most 8 ascending numbers from 10 to 100. Empty: no warnings.
    pub at: Vec<u8>,
}

/// A part of a pool that can fill up. `space`: data of volumes and snapshots, and reserved space
/// that is not used; `metadata`: pages in the metadata region, except for the part that is reserved
/// for rewriting pages; `fast`: dirty data on the fast tier, where it is to be written back;
/// `slow`: the slow tier of a pool with both tiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FillPart {
    /// Data of volumes and snapshots, and reserved space that is not used.
    Space,
    /// Pages in the metadata region, except for the part that is reserved for rewriting pages.
    Metadata,
    /// Dirty data on the fast tier, where it is to be written back.
    Fast,
    /// The slow tier of a pool with both tiers.
    Slow,
}

/// Recent trend of usage. `unknown`: too few samples since the daemon was started, or no consistent
/// direction; `steady`: it does not grow, or takes more than five years to fill; `falling`;
/// `filling`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Too few samples since the daemon was started, or no consistent direction.
    Unknown,
    /// It does not grow, or takes years to fill.
    Steady,
    /// Usage falls.
    Falling,
    /// Usage grows.
    Filling,
}

/// Usage of a part of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fill {
    /// The part.
    pub part: FillPart,
    /// Used bytes; may exceed the capacity.
    pub used: u64,
    /// Capacity in bytes.
    pub capacity: u64,
    /// Usage in percent, rounded down.
    pub percent: u64,
    /// Highest warning level in effect; it stays in effect until usage is one percentage point
    /// below it. Null below the lowest level.
    pub level: Option<u8>,
    /// Recent trend.
    pub trend: Trend,
    /// Forecast: seconds until it is full at the recent rate. Null while it does not fill.
    pub seconds_to_full: Option<u64>,
    /// Period over which the rate was observed, in seconds: up to ten minutes or up to a day,
    /// whichever forecasts less time.
    pub trend_s: Option<u64>,
}
