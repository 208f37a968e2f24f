//! Pools and their vdrives.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Media class of a pool's drives. `fast`: flash; `slow`: disks, or slower flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Flash.
    Fast,
    /// Disks, or slower flash.
    Slow,
}

/// Layout of a vdrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Layout {
    /// Concatenation of drives of any size; the capacity is their sum.
    Concat,
    /// Striped round-robin over the drives; what a larger drive has beyond the smallest one is
    /// appended as a concatenation.
    Stripe {
        /// Stripe unit in bytes: a power of two from 4 KiB to 1 MiB.
        chunk: u64,
    },
    /// Mirror of two or three members; the capacity is that of the smallest one.
    Mirror,
}

/// A vdrive to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VdriveSpec {
    /// Tier.
    pub tier: Tier,
    /// Layout.
    pub layout: Layout,
    /// Drive specifications, for example `file:/dev/nvme0n1`.
    pub drives: Vec<String>,
}

/// Write-back policy of a pool. `slow_first`: written data is absorbed by the fast tier and written
/// back to its slow home location soon; `fast_first`: it stays on the fast tier until its space is
/// needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpacePolicy {
    /// Written data stays on the fast tier until its space is needed.
    FastFirst,
    /// Written data is absorbed by the fast tier and written back to its slow home location soon.
    #[default]
    SlowFirst,
}

/// A pool to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolCreate {
    /// Name of the pool: letters, digits, `-`, `_` and `.`, beginning with a letter; at most 64.
    pub name: String,
    /// Its vdrives; at least one.
    pub vdrives: Vec<VdriveSpec>,
    /// Write-back policy.
    #[serde(default)]
    pub policy: SpacePolicy,
    /// Number of shards; 0: one per CPU core.
    #[serde(default)]
    pub shards: u16,
    /// Overwrite drives that contain other data (destroys it).
    #[serde(default)]
    pub force: bool,
    /// Accept an unmirrored fast tier over a slow one: data is lost when a fast drive fails.
    #[serde(default)]
    pub accept_unmirrored: bool,
}

/// Drives from which to open a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolImport {
    /// Drive specifications. Without `degraded`, the pool's other drives are found by the labels of
    /// these.
    #[serde(default)]
    pub drives: Vec<String>,
    /// Directories whose files and block devices are searched besides.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Open the pool although drives are missing.
    #[serde(default)]
    pub degraded: bool,
    /// Open the pool although a drive, or its metadata, was restored to an earlier state: what was
    /// written since is lost.
    #[serde(default)]
    pub accept_old: bool,
}

/// Drives to search for pools.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolScan {
    /// Drive specifications.
    #[serde(default)]
    pub drives: Vec<String>,
    /// Directories whose files and block devices are searched, without their subdirectories, for
    /// example `/dev/disk/by-id`.
    #[serde(default)]
    pub folders: Vec<String>,
}

/// Pauses or resumes promotion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldPromotion {
    /// `true` pauses promotion into RAM and the fast tier, `false` resumes it.
    pub hold: bool,
}

/// A vdrive to add to a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VdriveAdd {
    /// Tier.
    pub tier: Tier,
    /// Layout.
    pub layout: Layout,
    /// Drive specifications.
    pub drives: Vec<String>,
    /// Overwrite drives that contain other data (destroys it).
    #[serde(default)]
    pub force: bool,
}

/// A vdrive that was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VdriveRef {
    /// Number of the vdrive in the pool.
    pub vdrive: u8,
}

/// A drive of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Drive {
    /// Id of the drive: 32 hexadecimal digits.
    pub id: String,
    /// Drive specification.
    pub spec: String,
    /// Size in bytes.
    pub size: u64,
    /// `online`; `syncing`: being resynced; `out`: excluded from its mirror, which runs without it;
    /// `offline`: taken offline by a user; or `missing`.
    pub state: String,
    /// Completed reads since the pool was opened.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Failed requests.
    pub errors: u64,
    /// Blocks with a wrong checksum that were repaired from another member.
    pub repaired: u64,
    /// Requests that were not answered within the deadline.
    #[serde(default)]
    pub timeouts: u64,
    /// The drive does not answer, or is far slower than usual.
    #[serde(default)]
    pub slow: bool,
    /// Why the drive is not online; empty if it is.
    #[serde(default)]
    pub why: String,
    /// Progress of its resync in percent; null unless `syncing`.
    #[serde(default)]
    pub synced_percent: Option<u8>,
    /// Bytes written to it since it joined the pool, by purpose.
    #[serde(default)]
    pub wear: super::Wear,
    /// SMART health; only for disks of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<super::DriveHealth>,
}

/// Drive failures that data survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Protection {
    /// Number of drives that may fail now, whichever they are, without loss of data. 0: the failure
    /// of one drive may lose data. Members of mirrors that are not up to date do not count.
    pub survives_failures: u32,
    /// The same when all members of mirrors are up to date. 0: no redundancy.
    pub by_design: u32,
}

/// A vdrive of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Vdrive {
    /// Number of the vdrive in the pool, from 1.
    pub id: u8,
    /// Tier.
    pub tier: Tier,
    /// Layout.
    pub layout: Layout,
    /// `online`, `degraded`, `failed` or `evacuating`.
    pub state: String,
    /// Usable bytes.
    pub capacity: u64,
    /// Used bytes.
    pub used: u64,
    /// Failures of its drives that its data survives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// Its drives.
    pub drives: Vec<Drive>,
}

/// Vdrives of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VdriveList {
    /// The vdrives.
    pub items: Vec<Vdrive>,
}

/// An open pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Id of the pool: 32 hexadecimal digits.
    pub id: String,
    /// Name of the pool.
    pub name: String,
    /// `online`, `degraded`, `full` or `failed`; `messages` explain it.
    pub state: String,
    /// Conditions that need attention, and what to do; empty if there are none.
    pub messages: Vec<String>,
    /// Drive failures that all of its data survives: the least of its vdrives, as the loss of one
    /// affects all volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// Write-back policy.
    pub policy: SpacePolicy,
    /// Number of shards.
    pub shards: u16,
    /// Usable bytes of all tiers.
    pub capacity: u64,
    /// Stored bytes, without clean copies.
    pub used: u64,
    /// Bytes reserved for volumes and not used yet.
    pub reserved: u64,
    /// Stored and reserved bytes beyond the capacity, after a power cut undid discards whose space
    /// had been reused. No new space is allocated until it is 0.
    #[serde(default)]
    pub overpromised: u64,
    /// Provisioned bytes: sum of the volumes' sizes.
    #[serde(default)]
    pub promised: u64,
    /// Overcommit ratio: provisioned space in percent of the usable space; above 100 the pool is
    /// overcommitted.
    #[serde(default)]
    pub promised_percent: u64,
    /// Usage of its parts, with forecasts.
    #[serde(default)]
    pub fills: Vec<super::Fill>,
    /// Usage levels at which a warning is raised, in percent, ascending.
    #[serde(default)]
    pub warn_at: Vec<u8>,
    /// Usable bytes of the fast tier.
    pub fast_capacity: u64,
    /// Dirty bytes on the fast tier.
    pub fast_dirty: u64,
    /// Bytes of clean copies on the fast tier: blocks that are also at their slow home location.
    pub fast_shadow: u64,
    /// Its vdrives.
    pub vdrives: Vec<Vdrive>,
    /// Number of volumes.
    pub volumes: u64,
    /// Promotion is paused by a user.
    pub promotion_held: bool,
    /// Memory used for maps, in bytes.
    pub map_bytes: u64,
    /// Memory used by the RAM cache, in bytes.
    pub ram_bytes: u64,
    /// Current limit of the RAM cache in bytes; below its configured size while the host is short
    /// of memory.
    #[serde(default)]
    pub ram_limit: u64,
    /// The running scrub, or the last one.
    #[serde(default)]
    pub scrub: super::Scrub,
    /// Blocks that were found lost when the pool was opened, until a scrub of the whole pool has
    /// completed.
    #[serde(default)]
    pub opening_lost: u64,
    /// Write budget of promotion; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion_budget: Option<super::PromotionBudget>,
}

/// A pool that should be open and is not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AbsentPool {
    /// Id of the pool.
    pub id: String,
    /// Name of the pool.
    pub name: String,
    /// Drives from which it was opened before.
    pub drives: Vec<String>,
    /// Why it is not open, and what to do.
    pub message: String,
}

/// Open pools, and pools that should be open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    /// The open pools.
    pub items: Vec<Pool>,
    /// Pools that should be open and are not.
    pub absent: Vec<AbsentPool>,
}

/// A pool that can be imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Importable {
    /// Id of the pool.
    pub id: String,
    /// Name of the pool.
    pub name: String,
    /// Specifications of its drives that were found.
    pub found: Vec<String>,
    /// Last known specifications of its drives that were not found.
    pub missing: Vec<String>,
}

/// Pools that can be imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ImportableList {
    /// The pools.
    pub items: Vec<Importable>,
    /// Drives that could not be opened, each with the reason, for example that another program uses
    /// it.
    #[serde(default)]
    pub passed_over: Vec<String>,
}

/// Counters of a pool or a volume since the pool was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Counters {
    /// Completed host reads.
    pub reads: u64,
    /// Completed host writes.
    pub writes: u64,
    /// Bytes read by hosts.
    pub read_bytes: u64,
    /// Bytes written by hosts.
    pub write_bytes: u64,
    /// Completed host flushes.
    pub flushes: u64,
    /// 4 KiB blocks read from RAM.
    pub blocks_ram: u64,
    /// 4 KiB blocks read from the fast tier.
    pub blocks_fast: u64,
    /// 4 KiB blocks read from the slow tier.
    pub blocks_slow: u64,
    /// 4 KiB blocks read that were never written.
    pub blocks_zero: u64,
    /// Reads that bypassed placement; included in `reads`.
    #[serde(default)]
    pub bypassed_reads: u64,
    /// Writes that bypassed placement; included in `writes`.
    #[serde(default)]
    pub bypassed_writes: u64,
    /// 4 KiB blocks, whole or in part, of both.
    #[serde(default)]
    pub bypassed_blocks: u64,
    /// Bytes promoted to the fast tier.
    pub promoted_bytes: u64,
    /// Bytes demoted to the slow tier.
    pub demoted_bytes: u64,
    /// Sum of the latencies of reads in nanoseconds.
    pub read_ns: u64,
    /// Sum of the latencies of writes in nanoseconds.
    pub write_ns: u64,
}
