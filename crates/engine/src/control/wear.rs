//! Bytes written to drives, and the promotion budget.

use serde::{Deserialize, Serialize};

/// Bytes that a pool wrote to one of its drives, by what they were for; what was written since the labels were
/// written last is lost in a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WearStatus {
    /// Start of counting: seconds since 1970; 0: not known yet.
    pub since_s: u64,
    /// Data that hosts wrote.
    pub hosts: u64,
    /// Data that was brought to the fast tier.
    pub promotion: u64,
    /// Data that was demoted, was moved together or off a vdrive, was repaired, or copied to a mirror's member.
    pub upkeep: u64,
    /// The metadata region and labels.
    pub metadata: u64,
}

impl WearStatus {
    /// All of them.
    pub fn total(&self) -> u64 {
        let parts = [self.hosts, self.promotion, self.upkeep, self.metadata];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Changes of a pool; omitted ones stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PoolChange {
    /// Bytes a day that promotion may write to the fast tier, rounded up to whole 4 KiB; 0: as many as are worth
    /// it.
    pub promotion_budget: Option<u64>,
}

/// The promotion budget of a pool's fast tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BudgetStatus {
    /// Bytes a day.
    pub daily: u64,
    /// Bytes written in the last 24 hours, counted by whole hours, since the pool was opened or the budget set.
    pub today: u64,
    /// Bytes that may be written immediately.
    pub left: u64,
}
