//! What can be written about a volume's placement on the command line.

use crate::arguments::Switch;
use clap::{Args, ValueEnum};

/// How soon something counts as hot.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Reaction {
    /// More is promoted, sooner
    Eager,
    /// As for every volume
    Normal,
    /// Less is promoted, later
    Thrifty,
}

/// `volume set`: where a volume's data is kept.
#[derive(Args, Debug)]
pub struct Placement {
    /// Whether reads bring something to the fast tier
    #[arg(long, group = "what")]
    pub promotion: Option<Switch>,
    /// Keep the volume, or LENGTH bytes of it from OFFSET on, on the fast or the slow tier, or on none; may
    /// be given several times
    #[arg(long, value_name = "fast|slow|none[:OFFSET:LENGTH]", group = "what")]
    pub pin: Vec<String>,
    /// Bytes on the fast tier up to which other volumes give way first, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub fast_floor: Option<String>,
    /// Bytes on the fast tier beyond which it promotes nothing and gives way first, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub fast_ceiling: Option<String>,
    /// How soon something is promoted
    #[arg(long, group = "what")]
    pub reaction: Option<Reaction>,
    /// Bytes a day that promotion may write to the fast tier, or none for as many as are worth it
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub write_budget: Option<String>,
    /// Initiators whose reads and writes leave placement alone, like a backup that reads everything once, or none
    #[arg(long, value_name = "NAME[,NAME]...|none", group = "what")]
    pub bypass: Option<String>,
}
