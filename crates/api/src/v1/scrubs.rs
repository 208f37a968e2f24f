//! Scrubs of pools.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A scrub to be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrubStart {
    /// Bytes a second that it may read from the pool's drives; the daemon's configuration says
    /// when left out.
    #[serde(default)]
    pub rate: Option<u64>,
}

/// A copy that a scrub found wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScrubFault {
    /// The volume whose data or map it is; empty when it is the pool's own.
    pub volume: String,
    /// First byte of the volume that it concerns.
    pub offset: u64,
    /// Bytes that it concerns.
    pub length: u64,
    /// The drive that has it.
    pub drive: String,
    /// What was wrong.
    pub error: String,
    /// It is right again.
    pub repaired: bool,
}

/// The scrub of a pool that runs, or the last one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Scrub {
    /// `never`, `running`, `paused`, `done` or `cancelled`.
    pub state: String,
    /// When it began: seconds since 1970.
    pub began_s: u64,
    /// How long it ran, in seconds.
    pub took_s: u64,
    /// Bytes read from drives.
    pub bytes: u64,
    /// Bytes in all, while it runs; may shrink or grow as hosts write.
    pub total: u64,
    /// Bytes a second, while it runs.
    pub rate: u64,
    /// Seconds left at that rate.
    pub seconds_left: Option<u64>,
    /// Its job, while it runs.
    pub job: Option<u64>,
    /// Copies of blocks and pages that were checked.
    pub blocks: u64,
    /// Copies that were not right.
    pub errors: u64,
    /// Of those, copies that are right again.
    pub repaired: u64,
    /// Blocks and pages of which no right copy is left.
    pub lost: u64,
    /// The first copies that were not right, since the pool was opened; with a pool's state only
    /// a few of them.
    pub faults: Vec<ScrubFault>,
}
