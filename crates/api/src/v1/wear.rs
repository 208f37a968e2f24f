//! Wear of drives, and the write budget of promotion (docs/placement.md#wear).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Bytes that a pool wrote to one of its drives, by purpose. Those written since the last update of
/// the labels, some minutes at most, are lost in a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Wear {
    /// Start of counting, usually when the drive joined, in seconds since 1970; absent: since the
    /// pool was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<u64>,
    /// Sum of all purposes.
    pub total: u64,
    /// Host writes.
    pub hosts: u64,
    /// Data promoted to the fast tier.
    pub promotion: u64,
    /// Write-back, compaction, evacuation, repair, and resync of mirror members.
    pub upkeep: u64,
    /// Metadata region and labels.
    pub metadata: u64,
    /// Mean bytes per day over the whole time; divided by the drive's size: drive writes per day.
    /// Absent during the first minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<u64>,
    /// The same since the daemon was started or opened the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_since_start: Option<u64>,
}

/// Changes of a pool; fields that are absent are unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// Bytes per day that promotion may write to the fast tier, rounded up to a multiple of 4,096;
    /// 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion_budget: Option<u64>,
}

/// Write budget of promotion for a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PromotionBudget {
    /// Budget in bytes per day.
    pub daily: u64,
    /// Bytes written in the last 24 hours, counted by whole hours, since the pool was opened or the
    /// budget was set.
    pub today: u64,
    /// Bytes that promotion may write now; it pauses at 0.
    pub left: u64,
}
