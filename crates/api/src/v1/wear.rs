//! What is written to drives, and what promotion may write.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Bytes that a pool wrote to one of its drives, by what they were for. What was written since the labels were
/// written last, at most some minutes before, is lost when the power is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Wear {
    /// Since when they count, mostly since the drive joined: seconds since 1970. Nothing: since the pool was
    /// opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<u64>,
    /// All of them.
    pub total: u64,
    /// Data that hosts wrote.
    pub hosts: u64,
    /// Data that was brought to the fast tier.
    pub promotion: u64,
    /// Data that sank, was moved together or off a vdrive, was mended, or copied to a mirror's leg.
    pub upkeep: u64,
    /// The metadata region and labels.
    pub metadata: u64,
    /// Bytes a day in all that time; divided by the drive's size, drive writes a day. Nothing in the first
    /// minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<u64>,
    /// The same since the daemon was started, or opened the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_since_start: Option<u64>,
}

/// What is changed of a pool; what is not given stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// Bytes a day that promotion may write to the fast tier, rounded up to a multiple of 4,096; 0: as many as
    /// are worth it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion_budget: Option<u64>,
}

/// What promotion of a pool may write to the fast tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PromotionBudget {
    /// Bytes a day.
    pub daily: u64,
    /// Bytes written in the last 24 hours, counted by whole hours, since the pool was opened or the budget set.
    pub today: u64,
    /// Bytes that may be written at once. With 0 promotion pauses.
    pub left: u64,
}
