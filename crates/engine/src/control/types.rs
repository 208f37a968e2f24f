//! Requests of the control plane and the engine's responses. Sizes are in bytes, times in seconds.

use super::knobs::{KnobsChange, KnobsStatus};
use super::qos::{PolicyChoice, VolumeQos};
use super::spread::IoSpread;
use super::wear::{BudgetStatus, WearStatus};
use block::Lasting;
use reactor::Cores;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use units::SnapshotId;

/// The kind of an [`EngineError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The pool, volume, vdrive, drive or job does not exist.
    NotFound,
    /// The name is taken, or the drive is in use.
    Exists,
    /// The request itself is wrong.
    Invalid,
    /// Refused to prevent data loss; an explicit option (`force`, `accept_…`) permits it.
    Refused,
    /// The object is in use.
    Busy,
    /// Not enough space.
    NoSpace,
    /// A drive, file or the system failed.
    Io,
    /// The content of the drives is damaged or of a newer version.
    Damaged,
}

/// The reason why a request was rejected: nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EngineError {
    /// The kind, for programs.
    pub code: ErrorCode,
    /// The message, for people: what, why, and what to do.
    pub message: String,
}

impl EngineError {
    /// An error with a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EngineError {}

/// A media class of a pool's drives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Flash.
    Fast,
    /// Disks, or slower flash.
    Slow,
}

/// Layout of a vdrive over its drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LayoutSpec {
    /// Concatenation; drives of any sizes, the capacity is their sum.
    Concat,
    /// Round robin in chunks; excess space of larger drives is concatenated.
    Stripe {
        /// Bytes on one drive before the next: a power of two from 4 KiB to 1 MiB.
        chunk: u64,
    },
    /// Two or three copies; the smallest drive determines the capacity.
    Mirror,
}

/// A vdrive to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VdriveSpec {
    /// Its tier.
    pub tier: Tier,
    /// Its layout.
    pub layout: LayoutSpec,
    /// Drive specifications, e.g. `file:/dev/nvme0n1`.
    pub drives: Vec<String>,
}

/// Write-back policy: when written data is moved to the slow tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpacePolicy {
    /// Written data stays on the fast tier until its space is needed.
    FastFirst,
    /// Written data is absorbed by the fast tier and written back to its home location soon.
    #[default]
    SlowFirst,
}

/// A pool to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Letters, digits, `-`, `_`, `.`; begins with a letter; at most 64.
    pub name: String,
    /// At least one.
    pub vdrives: Vec<VdriveSpec>,
    /// Write-back policy.
    pub policy: SpacePolicy,
    /// Number of single-threaded engines; 0: one per core.
    pub shards: u16,
    /// Overwrite drives that contain data.
    pub force: bool,
    /// Accept an unmirrored fast tier over a slow one, whose loss loses data.
    pub accept_unmirrored: bool,
}

/// The content found on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveReport {
    /// The specification that opens it.
    pub spec: String,
    /// Size.
    pub size: u64,
    /// Logical sector.
    pub logical_sector: u32,
    /// Physical sector.
    pub physical_sector: u32,
    /// `solid`, `spinning` or `unknown`.
    pub rotation: String,
    /// Whether it has a volatile write cache.
    pub write_cache: bool,
    /// Its content, by name (`ext4 filesystem`, `GPT partition table`, `convect pool NAME`).
    pub found: Option<String>,
    /// The pool that uses it.
    pub pool: Option<String>,
}

/// State of a drive in a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveStatus {
    /// Its id, 32 hex digits.
    pub id: String,
    /// The specification that opens it.
    pub spec: String,
    /// Size.
    pub size: u64,
    /// `online`, `syncing` (it is being resynced), `out` (a mirror runs without
    /// it), `offline` (taken offline manually) or `missing`.
    pub state: String,
    /// Requests completed since the pool was opened.
    pub reads: u64,
    /// Same for writes.
    pub writes: u64,
    /// Bytes read since the pool was opened.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Nanoseconds that its reads took, summed: 0 for those served directly from this process's memory.
    pub read_ns: u64,
    /// Same for writes.
    pub write_ns: u64,
    /// Its reads and writes by times and sizes.
    pub spread: IoSpread,
    /// Requests that failed.
    pub errors: u64,
    /// Blocks that did not match their checksum and were repaired from another member.
    pub repaired: u64,
    /// Requests that timed out.
    pub timeouts: u64,
    /// It is not responding, or far slower than usual.
    pub slow: bool,
    /// Why it is not online; empty when it is.
    pub why: String,
    /// Progress of its resync, in per cent.
    pub synced_percent: Option<u8>,
    /// Bytes written to it since it joined.
    pub wear: WearStatus,
}

/// State of a vdrive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VdriveStatus {
    /// Its number in the pool, from 1.
    pub id: u8,
    /// Its tier.
    pub tier: Tier,
    /// Its layout.
    pub layout: LayoutSpec,
    /// `online`, `degraded`, `failed` or `evacuating`.
    pub state: String,
    /// Usable bytes.
    pub capacity: u64,
    /// Bytes in use.
    pub used: u64,
    /// Its drives.
    pub drives: Vec<DriveStatus>,
}

/// A scrub to start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubSpec {
    /// Bytes a second that it may read from the pool's drives.
    pub rate: u64,
    /// Now: seconds since 1970.
    pub began_s: u64,
}

/// A bad copy that a scrub found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScrubFaultStatus {
    /// The volume whose data or map it is; empty when it is the pool's own.
    pub volume: String,
    /// First byte of the volume that it concerns.
    pub offset: u64,
    /// Bytes that it concerns.
    pub length: u64,
    /// The drive with the bad copy.
    pub drive: String,
    /// The fault.
    pub error: String,
    /// It was repaired.
    pub repaired: bool,
}

/// The running scrub of a pool, or the last one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScrubStatus {
    /// `never`, `running`, `paused`, `done` or `cancelled`.
    pub state: String,
    /// Its start: seconds since 1970. Before the first scrub: the start of the schedule.
    pub began_s: u64,
    /// Its duration in seconds.
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
    /// Bad copies.
    pub errors: u64,
    /// Of these, repaired copies.
    pub repaired: u64,
    /// Blocks and pages without an intact copy.
    pub lost: u64,
    /// The first bad copies, since the pool was opened.
    pub faults: Vec<ScrubFaultStatus>,
}

/// The parts of a pool that can become full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillPart {
    /// Data of volumes and snapshots, with reservations.
    Space,
    /// The metadata region, except its reserve for rewriting pages.
    Metadata,
    /// Dirty data on the fast tier, if it is to be demoted.
    Fast,
    /// The slow tier below a fast one.
    Slow,
}

/// Usage of a part of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FillStatus {
    /// The part.
    pub part: FillPart,
    /// Bytes that are taken; may be more than there is room for.
    pub used: u64,
    /// Bytes that there is room for.
    pub capacity: u64,
}

/// State of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its id, 32 hex digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `online`, `degraded`, `full` or `failed`, with a sentence where it is not online.
    pub state: String,
    /// Messages for the administrator; empty when there is no problem.
    pub messages: Vec<String>,
    /// Write-back policy.
    pub policy: SpacePolicy,
    /// Number of single-threaded engines.
    pub shards: u16,
    /// Usable bytes of all tiers.
    pub capacity: u64,
    /// Bytes that hold the only valid copy of something.
    pub used: u64,
    /// Bytes promised to volumes and not yet written.
    pub reserved: u64,
    /// Bytes reserved or stored beyond the capacity: a power cut undid discards whose space had
    /// been given out. Nothing new is until it is 0 again.
    pub overpromised: u64,
    /// Provisioned: sum of the volumes' sizes in bytes.
    pub promised: u64,
    /// Usage of its parts.
    pub fills: Vec<FillStatus>,
    /// Warning levels for their usage, in per cent, in order.
    pub warn_at: Vec<u8>,
    /// Fast tier: usable bytes, bytes of data that is nowhere else, bytes of clean copies.
    pub fast_capacity: u64,
    /// Dirty data on the fast tier.
    pub fast_dirty: u64,
    /// Clean copies on the fast tier.
    pub fast_shadow: u64,
    /// Its vdrives.
    pub vdrives: Vec<VdriveStatus>,
    /// Volumes.
    pub volumes: usize,
    /// Promotion is held.
    pub promotion_held: bool,
    /// Engine memory for maps, in bytes.
    pub map_bytes: u64,
    /// Engine memory for cached data (the RAM cache), in bytes.
    pub ram_bytes: u64,
    /// Its maximum size in bytes.
    pub ram_limit: u64,
    /// The running scrub, or the last one, with a few of the faults.
    pub scrub: ScrubStatus,
    /// The promotion budget, if there is one.
    pub budget: Option<BudgetStatus>,
    /// The outdated state that it was opened with, until a scrub of the whole pool has completed.
    pub old: Vec<OldStatus>,
    /// Blocks that openings found lost, until a scrub of all of it has ended.
    pub opening_lost: u64,
    /// Generation of its newest label.
    pub generation: u64,
}

/// Outdated state that a pool was opened with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OldStatus {
    /// The drive, by its specification; `None`: a shard's metadata.
    pub drive: Option<String>,
    /// Its description.
    pub message: String,
}

/// A pool that could be imported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

/// The result of a search of drives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScanReport {
    /// Pools that are not open.
    pub pools: Vec<Importable>,
    /// Drives that could not be opened, with reasons.
    pub passed_over: Vec<String>,
}

/// A volume to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// As a pool's name; unique in its pool.
    pub name: String,
    /// A multiple of 4,096 of at least 1 MiB, at most 256 TiB.
    pub size: u64,
    /// 512 or 4,096.
    pub lba_size: u32,
    /// All of its space is reserved at creation.
    pub thick: bool,
    /// Quota: maximum bytes of it and its snapshots, rounded up to whole 4 KiB; 0:
    /// none.
    pub quota: u64,
    /// Bytes that the pool keeps for it and its snapshots, rounded up to whole 4 KiB; 0: none.
    pub reservation: u64,
}

/// Changes of a volume; omitted ones stay.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct VolumeChange {
    /// As in [`VolumeSpec`].
    pub quota: Option<u64>,
    /// As in [`VolumeSpec`].
    pub reservation: Option<u64>,
    /// Its placement.
    pub knobs: KnobsChange,
    /// Its performance targets.
    pub targets: TargetsChange,
    /// Its quality-of-service policy.
    pub policy: Option<PolicyChoice>,
}

/// Changes of a volume's performance targets; omitted ones stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TargetsChange {
    /// Operations per second; 0: no target.
    pub iops: Option<u64>,
    /// Bytes a second, in the same way.
    pub bandwidth: Option<u64>,
    /// p99 latency in nanoseconds; 0: no target.
    pub latency_ns: Option<u64>,
}

/// Performance targets of a volume; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Targets {
    /// Operations per second.
    pub iops: u64,
    /// Bytes a second.
    pub bandwidth: u64,
    /// p99 latency in nanoseconds.
    pub latency_ns: u64,
}

/// State of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its number in the pool.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its pool.
    pub pool: String,
    /// Its size as hosts see it.
    pub size: u64,
    /// 512 or 4,096.
    pub lba_size: u32,
    /// Whether all of its space is reserved (thick).
    pub thick: bool,
    /// Bytes written and not discarded.
    pub mapped: u64,
    /// Bytes that it and its snapshots store: what its quota limits.
    pub held: u64,
    /// Its quota; 0: none.
    pub quota: u64,
    /// Bytes that the pool keeps for it and its snapshots; 0: none, or all of a thick one.
    pub reservation: u64,
    /// Bytes of those, or of a thick one's size, that it does not store.
    pub reserved: u64,
    /// Bytes that it and its snapshots have on the fast tier.
    pub fast: u64,
    /// Its placement.
    pub knobs: KnobsStatus,
    /// Its performance targets.
    pub targets: Targets,
    /// Its quality-of-service policy, and attained service, if it has one.
    pub qos: Option<VolumeQos>,
    /// Stable name for serial numbers.
    pub serial: String,
    /// `online` or `deleting`.
    pub state: String,
    /// The snapshot that it is receiving.
    pub receiving: Option<ReceiveStatus>,
}

/// A snapshot of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotStatus {
    /// Its name, one of its kind for its volume.
    pub name: String,
    /// The volume.
    pub volume: String,
    /// The pool.
    pub pool: String,
    /// Size of the volume then, in bytes.
    pub size: u64,
    /// Bytes that were written between the snapshot before and this one, and that are still there.
    pub stored: u64,
    /// When it was taken: seconds since 1970.
    pub created_s: u64,
    /// It is not deleted while this is set.
    pub held: bool,
    /// Volumes that were cloned from it.
    pub clones: Vec<String>,
    /// The schedule that took it and may delete it; empty: none.
    pub schedule: String,
    /// Identifies its content, globally and permanently: a `units::SnapshotId`.
    pub identity: String,
}

/// A snapshot of another pool that a volume receives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiveSpec {
    /// Its name.
    pub snapshot: String,
    /// Its content.
    pub to: SnapshotId,
    /// The content that the volume must have before; none: the volume is created.
    pub from: Option<SnapshotId>,
    /// Size of the volume then, in bytes.
    pub size: u64,
    /// 512 or 4,096, for a new volume.
    pub lba_size: u32,
    /// Bytes, from the first one on, that are not sent again.
    pub start: u64,
}

/// Progress of receiving a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReceiveStatus {
    /// Name of the snapshot.
    pub snapshot: String,
    /// Its future content: a `units::SnapshotId`.
    pub to: String,
    /// The volume's previous content, in the same way.
    pub from: Option<String>,
    /// Bytes, from the first one on, that are as they will be, durably.
    pub done: u64,
}

/// The snapshots that a clone took over when it was promoted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Promotion {
    /// The volume that had them, which is now a clone.
    pub parent: String,
    /// Names of the snapshots, oldest first.
    pub snapshots: Vec<String>,
}

/// A schedule of snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// Its name, at most 40 bytes, with which those of its snapshots begin; one of its kind for
    /// each volume.
    pub name: String,
    /// The volumes, of which atomic snapshots are taken.
    pub volumes: Vec<String>,
    /// Interval in seconds.
    pub every_s: u64,
    /// Snapshots kept per volume.
    pub keep: u32,
}

/// State of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduleStatus {
    /// Its name.
    pub name: String,
    /// The pool.
    pub pool: String,
    /// The volumes.
    pub volumes: Vec<String>,
    /// Interval in seconds.
    pub every_s: u64,
    /// Snapshots kept per volume.
    pub keep: u32,
    /// Its start: seconds since 1970.
    pub since_s: u64,
    /// Time of its last snapshot: seconds since 1970.
    pub last_s: Option<u64>,
    /// Missed snapshots since its start.
    pub missed: u64,
    /// Time of the first missed one: seconds since 1970.
    pub missed_since_s: Option<u64>,
}

/// A due snapshot of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleTurn {
    /// The snapshot's name.
    pub snapshot: String,
    /// Now: seconds since 1970.
    pub now_s: u64,
    /// Snapshots missed since the last one.
    pub missed: u64,
    /// Time of the first one: seconds since 1970.
    pub missed_since_s: u64,
}

/// A range of a volume that differs from a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedRange {
    /// First byte.
    pub offset: u64,
    /// Length in bytes: whole blocks of 4 KiB.
    pub len: u64,
    /// It contains data; otherwise it reads as zeroes.
    pub data: bool,
}

/// Differences between a volume or a snapshot and a snapshot, or a part of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotDiff {
    /// Size in bytes of the examined part.
    pub size: u64,
    /// Changed ranges, in order.
    pub ranges: Vec<ChangedRange>,
    /// Offset to continue from, in bytes, unless this is all.
    pub next: Option<u64>,
}

/// An export, stored in the pool; its parameters are interpreted by the front end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExportRecord {
    /// Unique in the pool.
    pub name: String,
    /// Volume name.
    pub volume: String,
    /// Front end, e.g. `nbd`.
    pub kind: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// The initiator that uses it, if one was specified.
    pub initiator: Option<String>,
    /// It is stored, but not offered to hosts.
    pub disabled: bool,
}

/// A job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its number.
    pub id: u64,
    /// `scrub`, `evacuate`, `resync`, `delete` or `reclaim`.
    pub kind: String,
    /// Pool and object, for people.
    pub subject: String,
    /// `running`, `paused`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// Bytes done.
    pub done: u64,
    /// Total bytes; may shrink or grow as hosts write.
    pub total: u64,
    /// Bytes a second over the last seconds.
    pub rate: u64,
    /// Seconds left at that rate.
    pub seconds_left: Option<u64>,
    /// Why it failed, or what it waits for.
    pub message: String,
}

/// Counters of a pool or a volume since the pool was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct IoCounters {
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
    pub bypassed_reads: u64,
    /// Writes of such initiators, among those above.
    pub bypassed_writes: u64,
    /// 4 KiB blocks, whole or in part, that both were of.
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

/// One cell of a volume's map: bytes of its part of the LBA space by where they are read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MapCell {
    /// In RAM.
    pub ram: u64,
    /// On the fast tier.
    pub fast: u64,
    /// On the slow tier.
    pub slow: u64,
    /// Never written.
    pub empty: u64,
    /// Uses of the extent that hosts used most, as [`ExtentHeat`] counts them.
    pub uses: u8,
}

impl MapCell {
    /// Adds what another one found of the same part.
    pub(crate) fn add(&mut self, more: &Self) {
        self.ram += more.ram;
        self.fast += more.fast;
        self.slow += more.slow;
        self.empty += more.empty;
        self.uses = self.uses.max(more.uses);
    }
}

/// Expectations of a drive's response time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveLimits {
    /// Nanoseconds after which a request times out.
    pub deadline_ns: u64,
    /// A drive that takes this many times its usual time for long is reported as slow.
    pub slow_factor: u32,
}

impl Default for DriveLimits {
    fn default() -> Self {
        Self {
            deadline_ns: 30_000_000_000,
            slow_factor: 10,
        }
    }
}

/// How the engine is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineConfig {
    /// Threads; 0 is one a core, at most 16.
    pub threads: usize,
    /// The cores that they run on.
    pub cores: Cores,
    /// Bytes of RAM for the RAM cache of each pool.
    pub ram_tier: u64,
    /// Bytes of RAM for cached map pages of each pool.
    pub map_cache: u64,
    /// Blocks of a shard's journal in pools that are made; by the pool's size where none.
    pub journal_blocks: Option<u64>,
    /// Groups of the metadata region of pools that are made, at least; by the number of shards
    /// where none.
    pub meta_groups: Option<u64>,
    /// Groups of space that a shard asks others for, as long as it finds fewer that are free.
    pub spare_groups: u64,
    /// Expectations of the drives' response times.
    pub drive_limits: DriveLimits,
    /// Memory that outlives the process, for acknowledged records that are not on drives yet.
    pub lasting: Lasting,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            threads: 0,
            cores: Cores::default(),
            ram_tier: 256 << 20,
            map_cache: 256 << 20,
            journal_blocks: None,
            meta_groups: None,
            spare_groups: 1,
            drive_limits: DriveLimits::default(),
            lasting: Lasting::NONE,
        }
    }
}
