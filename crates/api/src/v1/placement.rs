//! What can be chosen for the placement of a volume (docs/placement.md).

use super::Tier;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How soon something counts as hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// Sooner: more is promoted.
    Eager,
    /// As for every volume.
    Normal,
    /// Later: less is promoted.
    Thrifty,
}

/// Where a range of a volume is to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinTo {
    /// On the fast tier.
    Fast,
    /// On the slow tier.
    Slow,
    /// Wherever it is worth it.
    None,
}

/// A range that is to be kept on a tier from now on, whatever was said of it before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinChange {
    /// First byte; rounded down to a multiple of 65,536.
    #[serde(default)]
    pub offset: u64,
    /// Bytes, more than 0; the range is made longer until it ends with whole 65,536. Nothing: up to the
    /// volume's end, wherever that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Where it is to be.
    pub to: PinTo,
}

/// A range of a volume that is kept on one tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pin {
    /// First byte, a multiple of 65,536.
    pub offset: u64,
    /// Bytes, a multiple of 65,536; nothing: up to the volume's end, wherever that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The tier.
    pub tier: Tier,
}

/// What was chosen for the placement of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// Whether reads bring something to the fast tier.
    pub promotion: bool,
    /// What is pinned, in order.
    pub pins: Vec<Pin>,
    /// Bytes on the fast tier up to which others give way first; nothing: there is no floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Bytes on the fast tier beyond which it promotes nothing and gives way first; nothing: there is no
    /// ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_ceiling: Option<u64>,
    /// How soon something is promoted.
    pub reaction: Reaction,
    /// What promotion may write; nothing: as much as is worth it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_budget: Option<WriteBudget>,
    /// Whose reads and writes placement does not hear of; nothing: it hears of everybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<Bypass>,
}

/// Initiators that a volume bypasses, and what came of them since its pool was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bypass {
    /// Their names.
    pub initiators: Vec<String>,
    /// Reads that were bypassed, of the volume and its snapshots.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// 4 KiB blocks, whole or in part, that both were of.
    pub blocks: u64,
}

/// What promotion of a volume may write to the fast tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WriteBudget {
    /// Bytes a day.
    pub daily: u64,
    /// Bytes written since the pool was opened, or the budget was set.
    pub used: u64,
    /// Bytes that may be written at once. With 0 promotion pauses.
    pub left: u64,
}
