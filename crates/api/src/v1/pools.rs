//! Pools and their vdrives.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A media class of a pool's drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Flash.
    Fast,
    /// Disks, or slower flash.
    Slow,
}

/// How a vdrive lays its space over its drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Layout {
    /// One after the other; any sizes, capacity is their sum.
    Concat,
    /// Round robin in chunks; what a bigger drive has beyond the smallest is added as a concat.
    Stripe {
        /// Bytes on one drive before the next: a power of two from 4 KiB to 1 MiB.
        chunk: u64,
    },
    /// Two or three copies; the smallest drive counts.
    Mirror,
}

/// A vdrive to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VdriveSpec {
    /// Its tier.
    pub tier: Tier,
    /// Its layout.
    pub layout: Layout,
    /// Drive specifications, e.g. `file:/dev/nvme0n1`.
    pub drives: Vec<String>,
}

/// Where new, never-written space begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpacePolicy {
    /// Written data stays on the fast tier until its space is needed.
    FastFirst,
    /// Written data is absorbed by the fast tier and sinks to its slow home soon.
    #[default]
    SlowFirst,
}

/// A pool to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolCreate {
    /// Letters, digits, `-`, `_`, `.`; begins with a letter; at most 64.
    pub name: String,
    /// At least one.
    pub vdrives: Vec<VdriveSpec>,
    /// Where new space begins.
    #[serde(default)]
    pub policy: SpacePolicy,
    /// Single-threaded engines; 0 chooses one a core.
    #[serde(default)]
    pub shards: u16,
    /// Take drives that bear something else.
    #[serde(default)]
    pub force: bool,
    /// An unmirrored fast tier over a slow one is accepted: its loss loses data.
    #[serde(default)]
    pub accept_unmirrored: bool,
}

/// Drives to open a pool from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolImport {
    /// Drive specifications.
    pub drives: Vec<String>,
    /// Open it though some drives are missing.
    #[serde(default)]
    pub degraded: bool,
    /// Open it though a drive, or its metadata, was put back to an earlier state: what was written since is lost.
    #[serde(default)]
    pub accept_old: bool,
}

/// Drives to look for pools on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolScan {
    /// Drive specifications.
    pub drives: Vec<String>,
}

/// Whether promotion is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldPromotion {
    /// Nothing is promoted into RAM and the fast tier while it is held.
    pub hold: bool,
}

/// A vdrive to be added to a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VdriveAdd {
    /// Its tier.
    pub tier: Tier,
    /// Its layout.
    pub layout: Layout,
    /// Drive specifications.
    pub drives: Vec<String>,
    /// Take drives that bear something else.
    #[serde(default)]
    pub force: bool,
}

/// A vdrive that was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VdriveRef {
    /// Its number in the pool.
    pub vdrive: u8,
}

/// State of a drive in a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Drive {
    /// Its id, 32 hex digits.
    pub id: String,
    /// The specification that opens it.
    pub spec: String,
    /// Bytes.
    pub size: u64,
    /// `online`, `syncing` (it is being brought up to date), `out` (a mirror goes on without what
    /// is on it), `offline` (taken out by hand) or `missing`.
    pub state: String,
    /// Reads ended since the pool was opened.
    pub reads: u64,
    /// Writes ended.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Blocks that did not match their checksum and were mended from another leg.
    pub repaired: u64,
    /// Requests that the drive did not answer within the deadline.
    #[serde(default)]
    pub timeouts: u64,
    /// It does not answer, or takes far longer than its own usual time.
    #[serde(default)]
    pub slow: bool,
    /// Why it is not online; empty when it is.
    #[serde(default)]
    pub why: String,
    /// How much of what it lacks has been copied, while it is syncing.
    #[serde(default)]
    pub synced_percent: Option<u8>,
    /// What was written to it since it joined.
    #[serde(default)]
    pub wear: super::Wear,
    /// What it says of its health, where it is a disk of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<super::DriveHealth>,
}

/// State of a vdrive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Vdrive {
    /// Its number in the pool, from 1.
    pub id: u8,
    /// Its tier.
    pub tier: Tier,
    /// Its layout.
    pub layout: Layout,
    /// `online`, `degraded`, `failed` or `evacuating`.
    pub state: String,
    /// Usable bytes.
    pub capacity: u64,
    /// Bytes in use.
    pub used: u64,
    /// Its drives.
    pub drives: Vec<Drive>,
}

/// Vdrives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VdriveList {
    /// One entry a vdrive.
    pub items: Vec<Vdrive>,
}

/// State of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its id, 32 hex digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `online`, `degraded`, `full` or `failed`, with a sentence where it is not online.
    pub state: String,
    /// What a person should know or do; empty when all is well.
    pub messages: Vec<String>,
    /// Where new space begins.
    pub policy: SpacePolicy,
    /// Single-threaded engines.
    pub shards: u16,
    /// Usable bytes of all tiers.
    pub capacity: u64,
    /// Bytes that hold the only valid copy of something.
    pub used: u64,
    /// Bytes promised to volumes and not yet written.
    pub reserved: u64,
    /// Bytes stored or promised beyond what there is, after a power cut that took back discards whose
    /// room had been given out; nothing new is until it is 0.
    #[serde(default)]
    pub overpromised: u64,
    /// Sum of the volumes' sizes in bytes: what hosts may want to store.
    #[serde(default)]
    pub promised: u64,
    /// The same in whole per cent of the usable bytes; more than 100 is more than there is room for.
    #[serde(default)]
    pub promised_percent: u64,
    /// How full its parts are, and what is to be expected.
    #[serde(default)]
    pub fills: Vec<super::Fill>,
    /// Per cent at which it is warned that one of them fills, in order.
    #[serde(default)]
    pub warn_at: Vec<u8>,
    /// Usable bytes of the fast tier.
    pub fast_capacity: u64,
    /// Bytes of data on the fast tier that is newer than its home or has none.
    pub fast_dirty: u64,
    /// Bytes of clean copies on the fast tier of data whose home is slow.
    pub fast_shadow: u64,
    /// Its vdrives.
    pub vdrives: Vec<Vdrive>,
    /// Volumes.
    pub volumes: u64,
    /// Promotion into the fast tier is held.
    pub promotion_held: bool,
    /// Engine memory for maps, in bytes.
    pub map_bytes: u64,
    /// Engine memory for cached data (the RAM tier), in bytes.
    pub ram_bytes: u64,
    /// As much as that may be, in bytes: less than configured while the host is short of memory.
    #[serde(default)]
    pub ram_limit: u64,
    /// The scrub that runs, or the last one.
    #[serde(default)]
    pub scrub: super::Scrub,
    /// What promotion may write; nothing: as much as is worth it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion_budget: Option<super::PromotionBudget>,
}

/// A pool that the daemon knows and could not open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AbsentPool {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The drives that it was opened from.
    pub drives: Vec<String>,
    /// Why it is not open, and what to do.
    pub message: String,
}

/// Pools.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    /// The open pools.
    pub items: Vec<Pool>,
    /// The pools that should be open and are not.
    pub absent: Vec<AbsentPool>,
}

/// A pool that could be imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Importable {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Drives found, by specification.
    pub found: Vec<String>,
    /// Drives of the pool that were not among those searched, by their last specification.
    pub missing: Vec<String>,
}

/// Pools that could be imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ImportableList {
    /// One entry a pool.
    pub items: Vec<Importable>,
    /// Drives that could not be opened, since something else uses them say: each with why.
    #[serde(default)]
    pub passed_over: Vec<String>,
}

/// Counters of a pool or a volume since the pool was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Counters {
    /// Reads ended.
    pub reads: u64,
    /// Writes ended.
    pub writes: u64,
    /// Bytes read by hosts.
    pub read_bytes: u64,
    /// Bytes written by hosts.
    pub write_bytes: u64,
    /// Flushes ended.
    pub flushes: u64,
    /// 4 KiB blocks read from RAM.
    pub blocks_ram: u64,
    /// 4 KiB blocks read from the fast tier.
    pub blocks_fast: u64,
    /// 4 KiB blocks read from the slow tier.
    pub blocks_slow: u64,
    /// 4 KiB blocks read that were never written.
    pub blocks_zero: u64,
    /// Reads of initiators that their volume bypasses, among those above.
    #[serde(default)]
    pub bypassed_reads: u64,
    /// Writes of such initiators, among those above.
    #[serde(default)]
    pub bypassed_writes: u64,
    /// 4 KiB blocks, whole or in part, that both were of.
    #[serde(default)]
    pub bypassed_blocks: u64,
    /// Bytes promoted to the fast tier.
    pub promoted_bytes: u64,
    /// Bytes copied down to the slow tier.
    pub demoted_bytes: u64,
    /// Nanoseconds spent in reads, summed.
    pub read_ns: u64,
    /// Nanoseconds spent in writes, summed.
    pub write_ns: u64,
}
