//! Placement settings of a volume (docs/placement.md).

use super::Tier;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How eagerly data is promoted. `eager`: more is promoted, sooner; `normal`: the default;
/// `thrifty`: less is promoted, later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// More is promoted, sooner.
    Eager,
    /// The default.
    #[default]
    Normal,
    /// Less is promoted, later.
    Thrifty,
}

/// Tier that a range is pinned to; `none` removes pins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinTo {
    /// Pin to the fast tier.
    Fast,
    /// Pin to the slow tier.
    Slow,
    /// Remove pins: the placement policy decides.
    None,
}

/// A range to pin to a tier, or to unpin; it replaces existing pins where they overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinChange {
    /// Start of the range in bytes; rounded down to a multiple of 65,536.
    #[serde(default)]
    pub offset: u64,
    /// Length in bytes, more than 0; the end is rounded up to a multiple of 65,536. Absent: to the
    /// end of the volume, also after it is resized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Tier, or `none`.
    pub to: PinTo,
}

/// A pinned range of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pin {
    /// Start of the range in bytes, a multiple of 65,536.
    pub offset: u64,
    /// Length in bytes, a multiple of 65,536; absent: to the end of the volume, also after it is
    /// resized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Tier that it is pinned to.
    pub tier: Tier,
}

/// Placement settings of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// Reads promote data to the fast tier.
    pub promotion: bool,
    /// Pinned ranges, in ascending order.
    pub pins: Vec<Pin>,
    /// Guaranteed fast-tier space in bytes: data of other volumes is evicted first. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Maximum fast-tier space in bytes: beyond it nothing is promoted, and the volume's clean
    /// copies are evicted first. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_ceiling: Option<u64>,
    /// How eagerly data is promoted.
    pub reaction: Reaction,
    /// Promotion write budget; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_budget: Option<WriteBudget>,
    /// Initiators whose I/O bypasses placement; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<Bypass>,
}

/// Initiators whose I/O bypasses placement, with counters since the pool was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bypass {
    /// Names of the initiators.
    pub initiators: Vec<String>,
    /// Bypassed reads of the volume and its snapshots.
    pub reads: u64,
    /// Bypassed writes.
    pub writes: u64,
    /// 4 KiB blocks, whole or in part, of these reads and writes.
    pub blocks: u64,
}

/// Write budget of promotion for a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WriteBudget {
    /// Budget in bytes per day.
    pub daily: u64,
    /// Bytes written since the pool was opened or the budget was set.
    pub used: u64,
    /// Bytes that promotion may write now; it pauses at 0.
    pub left: u64,
}
