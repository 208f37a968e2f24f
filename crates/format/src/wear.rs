//! Bytes written to a drive, as stored in labels.

use crate::knobs::is_default;
use serde::{Deserialize, Serialize};

/// Bytes that a pool wrote to one of its drives, by what they were for. As they were when the label was written:
/// later writes are not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WearConfig {
    /// Start of counting: seconds since 1970, by the clock of the host; 0: not known yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub since_s: u64,
    /// Data that hosts wrote.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hosts: u64,
    /// Data that was brought to the fast tier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub promotion: u64,
    /// Data that sank, was moved together or off a vdrive, was repaired, or copied to a mirror's member.
    #[serde(default, skip_serializing_if = "is_default")]
    pub upkeep: u64,
    /// The metadata region and labels.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: u64,
}
