//! What is told once a second (docs/access.md).

use super::{Counters, Job};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LivePool {
    /// Its name.
    pub name: String,
    /// As a pool's.
    pub state: String,
    /// What it did since it was opened.
    pub counters: Counters,
    /// Bytes that hold the only valid copy of something.
    pub used: u64,
    /// Bytes of data on the fast tier that is newer than its home or has none.
    pub fast_dirty: u64,
    /// Bytes of clean copies on the fast tier.
    pub fast_shadow: u64,
    /// Bytes of its RAM tier in use.
    pub ram_bytes: u64,
}

/// A volume now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LiveVolume {
    /// Its pool.
    pub pool: String,
    /// Its name.
    pub name: String,
    /// What it did since its pool was opened: reads, writes, bytes read, bytes written, nanoseconds spent in reads,
    /// nanoseconds spent in writes.
    pub did: [u64; 6],
}

/// A quality-of-service policy that volumes of a pool have, now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LivePolicy {
    /// The pool.
    pub pool: String,
    /// The policy's name.
    pub name: String,
    /// Its service level.
    pub level: u8,
    /// Volumes that have it, of their own or with a group.
    pub volumes: u64,
    /// Operations a second that are promised, to all of those volumes and groups together.
    pub promised_iops: u64,
    /// What these attained since their pool was opened: operations that ended, that were held, and that took longer than
    /// the maximum latency; windows of 100 ms in which they asked for what they were promised, and those in which they got it.
    pub did: [u64; 5],
}

/// What changed since the event before; all of it in a viewer's first event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LiveState {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// It is all that there is: what is not in it is gone.
    pub whole: bool,
    /// Grows with each change that somebody makes: what lists show may be another then.
    pub changes: u64,
    /// The pools that changed.
    pub pools: Vec<LivePool>,
    /// The volumes that did something, the busiest ones when there are very many.
    pub volumes: Vec<LiveVolume>,
    /// The policies that volumes have, of all pools, when something of one changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<LivePolicy>>,
    /// The jobs, when one changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<Job>>,
}

/// Where a volume lies, or what changed of that since the event before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LiveMap {
    /// `POOL/VOLUME`.
    pub volume: String,
    /// The volume's size in bytes.
    pub size: u64,
    /// The first byte that is shown.
    pub start: u64,
    /// Bytes from there that are shown, in `cells` equal parts.
    pub length: u64,
    /// How many parts.
    pub cells: u32,
    /// Four hexadecimal digits a part, in order: sixteenths in RAM, on the fast and on the slow tier (15 is also
    /// all of it, 1 also less), and the uses as in a map. Nothing when only parts changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// Eight digits a part that changed: its number, then as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}
