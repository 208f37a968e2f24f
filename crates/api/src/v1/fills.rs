//! How full pools are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The levels at which it is warned that a pool fills.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolWarnings {
    /// Per cent: at most 8 growing numbers from 10 to 100. None: it is not warned.
    pub at: Vec<u8>,
}

/// What of a pool can fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FillPart {
    /// All that volumes and snapshots store, with what is promised to volumes.
    Space,
    /// The metadata region, as far as it is not kept for writing pages anew.
    Metadata,
    /// Data on the fast tier that is nowhere else, where it is to sink.
    Fast,
    /// The slow tier below a fast one.
    Slow,
}

/// How it went of late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Too little was seen since the daemon was started, or it went up and down.
    Unknown,
    /// It did not grow, or so slowly that it takes years.
    Steady,
    /// It became less.
    Falling,
    /// It grew.
    Filling,
}

/// How full a part of a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Fill {
    /// Which.
    pub part: FillPart,
    /// Bytes that are taken; may be more than there is room for.
    pub used: u64,
    /// Bytes that there is room for.
    pub capacity: u64,
    /// The same in whole per cent.
    pub percent: u64,
    /// The highest level of those at which it is warned that was reached; it holds until it is
    /// missed by a point.
    pub level: Option<u8>,
    /// How it went of late.
    pub trend: Trend,
    /// Seconds until it is full at the pace at which it filled.
    pub seconds_to_full: Option<u64>,
    /// Seconds over which that was seen: up to ten minutes, or up to a day, whichever leaves less
    /// time.
    pub trend_s: Option<u64>,
}
