//! Placement options of `convect volume set`.

use crate::arguments::Switch;
use clap::{Args, ValueEnum};

/// How eagerly data is promoted.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Reaction {
    /// Promote more, sooner
    Eager,
    /// Like the pool's other volumes
    Normal,
    /// Promote less, later
    Thrifty,
}

/// Placement options of `convect volume set`.
#[derive(Args, Debug)]
pub struct Placement {
    /// Whether reads promote data to the fast tier
    #[arg(long, group = "what")]
    pub promotion: Option<Switch>,
    /// Pin the volume, or LENGTH bytes of it from OFFSET on, to the fast or slow tier, or remove
    /// pins; repeatable
    #[arg(long, value_name = "fast|slow|none[:OFFSET:LENGTH]", group = "what")]
    pub pin: Vec<String>,
    /// Guaranteed fast-tier space, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub fast_floor: Option<String>,
    /// Fast-tier quota, or none; beyond it nothing is promoted and the volume's data is evicted
    /// first
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub fast_ceiling: Option<String>,
    /// How eagerly data is promoted
    #[arg(long, group = "what")]
    pub reaction: Option<Reaction>,
    /// Promotion budget: maximum bytes per day that promotion may write to the fast tier, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub write_budget: Option<String>,
    /// Initiators that bypass the cache, like a backup that reads everything once, or none
    #[arg(long, value_name = "NAME[,NAME]...|none", group = "what")]
    pub bypass: Option<String>,
}
