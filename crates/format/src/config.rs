//! The description of the whole pool in each of its labels. JSON, covered by the label's checksum.

use crate::knobs::is_default;
use crate::{Features, KnobsConfig, QosConfig, WearConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Write-back policy: when written data is moved from the fast to the slow tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// When the space on the fast tier is needed.
    FastFirst,
    /// Soon after it was written.
    SlowFirst,
}

/// A media class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierConfig {
    /// Flash.
    Fast,
    /// Disk.
    Slow,
}

/// Layout of a vdrive over its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LayoutConfig {
    /// Parts one after the other.
    Concat,
    /// Round robin over the parts.
    Stripe {
        /// Blocks on a part before the next.
        chunk_blocks: u64,
    },
    /// Every part holds everything.
    Mirror,
}

/// A range of a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartConfig {
    /// Drive id, 32 hex digits.
    pub drive: String,
    /// First byte.
    pub offset: u64,
    /// Length in blocks.
    pub blocks: u64,
    /// The part is a mirror's member that does not hold everything: it is not read.
    #[serde(default)]
    pub out: bool,
    /// Generation of the first label that said so; 0 when it is in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub out_since: u64,
    /// Why it is out, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub out_why: String,
    /// Stale regions: 16 hex digits for each 64 regions of the part, the first region in the
    /// lowest bit, or "all". A region is 1/4096 of the part, in whole groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stale: String,
}

/// A part of a vdrive: the vdrive (0 is the metadata region) and the part's index.
pub type LegId = (u8, usize);

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A vdrive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VdriveConfig {
    /// Its number, from 1; 0 is the metadata region.
    pub id: u8,
    /// Its tier.
    pub tier: TierConfig,
    /// Its layout.
    pub layout: LayoutConfig,
    /// Its parts.
    pub parts: Vec<PartConfig>,
    /// It is being emptied: nothing new is placed on it.
    #[serde(default)]
    pub evacuating: bool,
}

/// The metadata region: a mirror of one or two parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MetaConfig {
    /// Its parts, all of one length.
    pub parts: Vec<PartConfig>,
    /// Journal of each shard, in blocks.
    pub journal_blocks: u64,
}

/// A drive of the pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveConfig {
    /// Its id, 32 hex digits.
    pub id: String,
    /// Its last specification.
    pub spec: String,
    /// Size in bytes when it joined.
    pub size: u64,
    /// It was taken offline by hand: it is left alone until it is brought back.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offline: bool,
    /// Generation of the newest label that it is known to have, when this one did not go to it; 0:
    /// this one did, and it has the one before at least.
    #[serde(default, skip_serializing_if = "is_default")]
    pub labelled: u64,
    /// Bytes written to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wear: WearConfig,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VolumeConfig {
    /// Its number, never used again.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// 512 or 4,096.
    pub lba_size: u32,
    /// Space is reserved.
    pub thick: bool,
    /// It is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// The layer that takes its writes; 0: the one with the volume's number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub live: u32,
    /// A layer on that one that may have taken writes since; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: u32,
    /// The most bytes that it and its snapshots may store, whole blocks; 0: as much as the pool has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quota: u64,
    /// Bytes that are kept for it and its snapshots, whole blocks; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reservation: u64,
    /// Its placement settings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub knobs: KnobsConfig,
    /// Its performance targets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub targets: TargetsConfig,
    /// Number of its quality-of-service policy; 0, and one that the pool does not know: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: u32,
    /// Number of the group of volumes that it shares a policy with; 0, and one that the pool does not know: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: u32,
}

/// Performance targets of a volume; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TargetsConfig {
    /// Operations a second.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iops: u64,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bandwidth: u64,
    /// p99 latency in nanoseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub latency_ns: u64,
}

impl VolumeConfig {
    /// The layer that takes its writes.
    pub fn live(&self) -> u32 {
        if self.live == 0 { self.id } else { self.live }
    }
}

/// A layer of a volume that has, or had, snapshots or clones (docs/snapshots.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerConfig {
    /// Its number, from the same counter as volumes'.
    pub id: u32,
    /// The layer that it is based on; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parent: u32,
    /// The first layer of its family, by whose number its chunks are divided among shards.
    pub root: u32,
    /// It covers the epochs above its parent's up to this one.
    pub epoch: u32,
}

/// A snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotConfig {
    /// Its name, one of its kind for its volume.
    pub name: String,
    /// Number of the volume.
    pub volume: u32,
    /// The layer that it names.
    pub layer: u32,
    /// Size of the volume then, in bytes.
    pub size: u64,
    /// When it was taken: seconds since 1970, by the clock of the host.
    pub created_s: u64,
    /// It is not deleted while this is set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub held: bool,
    /// Name of the schedule that took it and may delete it; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// Identity of its content, if another pool took it: a `units::SnapshotId`; empty: this pool took it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

/// A volume that is being made as a snapshot of another pool is (docs/stream.md).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReceivingConfig {
    /// Number of the volume.
    pub volume: u32,
    /// Name that the snapshot will have.
    pub snapshot: String,
    /// Its future content: a `units::SnapshotId`.
    pub to: String,
    /// The volume's previous content, in the same way; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Bytes, from the first one on, that are as they will be, durably.
    #[serde(default, skip_serializing_if = "is_default")]
    pub done: u64,
}

/// Longest state of one volume's reservations, in bytes.
pub const RESERVATIONS_MAX: usize = 128 << 10;
/// Longest end of a log of changes that a pool keeps, in bytes.
pub const ANCHOR_MAX: usize = 512;

/// Stored SCSI reservations of a volume (docs/iscsi.md).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReservationsConfig {
    /// Number of the volume; a deleted one is skipped.
    pub volume: u32,
    /// Registrations and the reservation, as text that contains its own version.
    pub state: String,
}

/// A schedule of snapshots of some volumes, and how many are kept
/// (docs/snapshots.md).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduleConfig {
    /// Its name, one of its kind for each of its volumes.
    pub name: String,
    /// Numbers of the volumes, of which snapshots are taken at one moment; those that are no more
    /// are passed over.
    pub volumes: Vec<u32>,
    /// From one due time to the next, in seconds.
    pub every_s: u64,
    /// Snapshots that are kept of each volume.
    pub keep: u32,
    /// Since when it counts: seconds since 1970, by the clock of the host.
    pub since_s: u64,
    /// When it took the last one, in the same way; 0: none yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_s: u64,
    /// Due times for which none was taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missed: u64,
    /// The first of them; of no meaning when there is none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missed_since_s: u64,
}

/// An export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExportConfig {
    /// Its name.
    pub name: String,
    /// Volume name.
    pub volume: String,
    /// Front end.
    pub kind: String,
    /// The front end's parameters.
    pub parameters: BTreeMap<String, String>,
    /// The initiator that uses it, if one was specified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
    /// It is stored, but not offered to hosts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub disabled: bool,
}

/// Results of a scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScrubTotals {
    /// When it began: seconds since 1970, by the clock of the host.
    pub began_s: u64,
    /// Its duration in seconds.
    pub took_s: u64,
    /// Bytes read from drives.
    pub bytes: u64,
    /// Copies of blocks and pages that were checked.
    pub blocks: u64,
    /// Copies that were not right.
    pub errors: u64,
    /// Of these, repaired copies.
    pub repaired: u64,
    /// Blocks and pages of which no intact copy was left.
    pub lost: u64,
}

/// A scrub that has not ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScrubRunning {
    /// Bytes a second that it may read.
    pub rate: u64,
    /// Where each shard continues: the owner of a tree and a key in it; none when it has ended.
    pub at: Vec<Option<(u32, u32)>>,
    /// Its results so far.
    pub totals: ScrubTotals,
}

/// Scrubs of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScrubConfig {
    /// Since when the schedule counts when there was none yet: seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<u64>,
    /// The one that continues when the pool is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<ScrubRunning>,
    /// The last one that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ScrubTotals>,
    /// Whether that was cancelled before its end.
    #[serde(default)]
    pub cancelled: bool,
}

impl ScrubConfig {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A running scrub begins again: its results so far are invalid.
    pub fn restart(&mut self) {
        if let Some(running) = &mut self.running {
            running.at.iter_mut().for_each(|at| *at = Some((0, 0)));
        }
    }
}

/// Progress of a shard's metadata when a label was written. An opening finds at least that, unless metadata was put
/// back to an earlier state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CheckpointMark {
    /// Generation of its newest checkpoint.
    pub generation: u64,
    /// Epoch of its journal.
    pub epoch: u64,
    /// Number of the first journal page that is not part of that checkpoint.
    pub page: u64,
}

impl CheckpointMark {
    /// Whether what was found of a shard, with the journal's end as its page, lacks what this one had.
    pub fn is_beyond(&self, found: &Self) -> bool {
        (self.epoch, self.page) > (found.epoch, found.page)
    }
}

/// Outdated state that the pool was opened with on request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct OldConfig {
    /// The drive (id); empty: a shard's metadata.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drive: String,
    /// The shard, of metadata.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shard: u16,
    /// Generation of the label, or of the checkpoint, that was found.
    pub generation: u64,
    /// Generation that there was at least.
    pub expected: u64,
}

/// A paused job, also when the pool is opened again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PausedConfig {
    /// Its kind, as in the list of jobs.
    pub kind: String,
    /// The object in the pool.
    pub subject: String,
}

/// Default warning levels of a pool's usage, in per cent.
pub const WARN_AT: [u8; 3] = [80, 90, 95];

fn warn_at() -> Vec<u8> {
    WARN_AT.to_vec()
}

fn is_warn_at(levels: &[u8]) -> bool {
    levels == WARN_AT
}

/// A pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolConfig {
    /// Name.
    pub name: String,
    /// Where new space begins.
    pub policy: Policy,
    /// Shards, fixed when the pool is made.
    pub shards: u16,
    /// Blocks of a group, a power of two from 512 to 16,384.
    pub group_blocks: u64,
    /// The metadata region.
    pub meta: MetaConfig,
    /// Drives.
    pub drives: Vec<DriveConfig>,
    /// Vdrives.
    pub vdrives: Vec<VdriveConfig>,
    /// Volumes.
    pub volumes: Vec<VolumeConfig>,
    /// Layers of volumes that have, or had, snapshots or clones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerConfig>,
    /// Snapshots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotConfig>,
    /// Schedules of snapshots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleConfig>,
    /// Volumes that are being received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receiving: Vec<ReceivingConfig>,
    /// Reservations that outlive the daemon and a loss of power.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationsConfig>,
    /// Exports.
    pub exports: Vec<ExportConfig>,
    /// Number of the next volume or layer.
    pub next_volume: u32,
    /// Scrubs.
    #[serde(default, skip_serializing_if = "ScrubConfig::is_empty")]
    pub scrub: ScrubConfig,
    /// Per cent at which it is warned that the pool fills, in order; none: it is not warned.
    #[serde(default = "warn_at", skip_serializing_if = "is_warn_at")]
    pub warn_at: Vec<u8>,
    /// Bytes a day that promotion may write to the fast tier, whole blocks; 0: as many as are worth it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub promotion_budget: u64,
    /// Quality-of-service policies.
    #[serde(default, skip_serializing_if = "QosConfig::is_empty")]
    pub qos: QosConfig,
    /// Paused jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<PausedConfig>,
    /// The end of the log of changes of the daemon that had the pool last, at most [`ANCHOR_MAX`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_anchor: Option<String>,
    /// Id of the opening that the pool is in, or was in last: 32 hex digits, random; empty: none yet. What outlives a daemon
    /// in memory is called by it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub opening: String,
    /// Progress of each shard's metadata, by shard number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointMark>,
    /// Accepted outdated state, until a scrub of the whole pool has completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old: Vec<OldConfig>,
    /// Blocks that openings found lost, until a scrub of the whole pool has ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opening_lost: u64,
    /// Fields of compatible features that this version does not know: kept as they are.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, serde_json::Value>,
    /// The label's feature bits, which stand beside the description.
    #[serde(skip)]
    pub features: Features,
}

impl PoolConfig {
    /// Every part of the pool, the metadata region's first.
    pub fn parts(&self) -> impl Iterator<Item = (LegId, &PartConfig)> {
        let of = |vdrive| move |(index, part)| ((vdrive, index), part);
        let meta = self.meta.parts.iter().enumerate().map(of(0));
        let data = self
            .vdrives
            .iter()
            .flat_map(move |vdrive| vdrive.parts.iter().enumerate().map(of(vdrive.id)));
        meta.chain(data)
    }

    /// Notes what was accepted though it is old, once for each drive and shard.
    pub fn accept_old(&mut self, old: OldConfig) {
        let same = |known: &OldConfig| known.drive == old.drive && known.shard == old.shard;
        self.old.retain(|known| !same(known));
        self.old.push(old);
    }

    /// Notes that an opening found this many blocks lost. A scrub that has begun before does not count.
    pub fn note_opening_lost(&mut self, blocks: u64) {
        if blocks > 0 {
            self.opening_lost = self.opening_lost.saturating_add(blocks);
            self.scrub.restart();
        }
    }
}

impl DriveConfig {
    /// Generation of the oldest label that the drive may have now, where the newest label, which
    /// says this, is of `generation`.
    pub fn oldest_label(&self, generation: u64) -> u64 {
        match self.labelled {
            0 => generation.saturating_sub(1),
            known => known,
        }
    }
}
