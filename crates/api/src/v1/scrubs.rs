//! Scrubs of pools.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A scrub to start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrubStart {
    /// Maximum bytes per second read from the pool's drives; from the daemon's configuration by
    /// default.
    #[serde(default)]
    pub rate: Option<u64>,
}

/// A bad copy that a scrub found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScrubFault {
    /// Volume whose data or map is affected; empty for metadata of the pool itself.
    pub volume: String,
    /// Start of the affected range of the volume, in bytes.
    pub offset: u64,
    /// Length of the affected range in bytes.
    pub length: u64,
    /// Drive with the bad copy.
    pub drive: String,
    /// What is wrong.
    pub error: String,
    /// The copy was repaired.
    pub repaired: bool,
}

/// The running scrub of a pool, or the last one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Scrub {
    /// `never`, `running`, `paused`, `done` or `cancelled`.
    pub state: String,
    /// Start time, in seconds since 1970.
    pub began_s: u64,
    /// Duration in seconds.
    pub took_s: u64,
    /// Bytes read from drives.
    pub bytes: u64,
    /// Bytes to read in total, while it is running; may change as hosts write.
    pub total: u64,
    /// Bytes per second, while it is running.
    pub rate: u64,
    /// Estimated seconds left at that rate.
    pub seconds_left: Option<u64>,
    /// Number of its job, while it is running.
    pub job: Option<u64>,
    /// Verified copies of blocks and pages.
    pub blocks: u64,
    /// Bad copies.
    pub errors: u64,
    /// Bad copies that were repaired.
    pub repaired: u64,
    /// Blocks and pages without any good copy.
    pub lost: u64,
    /// First bad copies found since the pool was opened; only a few of them in the state of a pool.
    pub faults: Vec<ScrubFault>,
}
