//! Placement settings of a volume, and their status (docs/placement.md).

use super::types::Tier;
use format::ReactionConfig;
use serde::{Deserialize, Serialize};

/// How soon something counts as hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// Sooner: more is promoted.
    Eager,
    /// The default.
    #[default]
    Normal,
    /// Later: less is promoted.
    Thrifty,
}

impl From<ReactionConfig> for Reaction {
    fn from(kept: ReactionConfig) -> Self {
        match kept {
            ReactionConfig::Eager => Self::Eager,
            ReactionConfig::Normal => Self::Normal,
            ReactionConfig::Thrifty => Self::Thrifty,
        }
    }
}

impl From<Reaction> for ReactionConfig {
    fn from(asked: Reaction) -> Self {
        match asked {
            Reaction::Eager => Self::Eager,
            Reaction::Normal => Self::Normal,
            Reaction::Thrifty => Self::Thrifty,
        }
    }
}

/// A range of a volume that is kept on one tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pin {
    /// First byte, a multiple of 64 KiB.
    pub offset: u64,
    /// Bytes, a multiple of 64 KiB; none: up to the volume's end, wherever that is.
    pub length: Option<u64>,
    /// The tier.
    pub tier: Tier,
}

/// A range that is to be kept on a tier, whatever was said of it before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PinChange {
    /// First byte; rounded down to 64 KiB.
    pub offset: u64,
    /// Bytes, rounded up so that the range ends at a multiple of 64 KiB; none: up to the volume's end.
    pub length: Option<u64>,
    /// The tier; none: wherever it is worth it.
    pub tier: Option<Tier>,
}

/// Changes of a volume's placement settings; omitted ones stay.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KnobsChange {
    /// Whether reads promote.
    pub promotion: Option<bool>,
    /// Ranges that are pinned, or are no more, one after the other.
    pub pins: Vec<PinChange>,
    /// Bytes on the fast tier up to which others give way first, rounded up to whole 4 KiB; 0: none.
    pub fast_floor: Option<u64>,
    /// Bytes on the fast tier beyond which it promotes nothing and gives way first, rounded in the same
    /// way; 0: none.
    pub fast_ceiling: Option<u64>,
    /// How soon something is promoted.
    pub reaction: Option<Reaction>,
    /// Bytes a day that promotion may write, rounded in the same way; 0: as many as are worth it.
    pub write_budget: Option<u64>,
    /// Names of the bypassed initiators, at most 8; empty: none.
    pub bypass: Option<Vec<String>>,
}

/// Placement settings of a volume, with their status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnobsStatus {
    /// Whether reads promote.
    pub promotion: bool,
    /// Pinned ranges, in order.
    pub pins: Vec<Pin>,
    /// As in [`KnobsChange`].
    pub fast_floor: u64,
    /// As in [`KnobsChange`].
    pub fast_ceiling: u64,
    /// As in [`KnobsChange`].
    pub reaction: Reaction,
    /// As in [`KnobsChange`].
    pub write_budget: u64,
    /// As in [`KnobsChange`], each once.
    pub bypass: Vec<String>,
    /// Reads, writes and 4 KiB blocks of both that were of such initiators since the pool was opened.
    pub bypassed: [u64; 3],
    /// Bytes that promotion wrote since the pool was opened, or the budget was set.
    pub budget_used: u64,
    /// Bytes that it may write immediately.
    pub budget_left: u64,
}
