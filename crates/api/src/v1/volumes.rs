//! Volumes.

use super::{PinChange, Placement, Reaction, VolumeQos};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

fn default_lba_size() -> u32 {
    512
}

/// A volume to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCreate {
    /// Pool of the volume.
    pub pool: String,
    /// Name of the volume, unique in its pool; same syntax as a pool name.
    pub name: String,
    /// Size in bytes: a multiple of 4,096, from 1 MiB to 256 TiB.
    pub size: u64,
    /// Logical block size in bytes: 512 or 4,096.
    #[serde(default = "default_lba_size")]
    pub lba_size: u32,
    /// Reserve the full size at creation.
    #[serde(default)]
    pub thick: bool,
    /// Quota: maximum bytes that the volume and its snapshots may store, rounded up to a multiple
    /// of 4,096, at most 1 EiB; 0 or absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Reservation: bytes guaranteed to the volume and its snapshots, rounded up to a multiple of
    /// 4,096, at most the quota; 0 or absent: none. Not for thick volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    /// Quality-of-service policy, by name or number; `none` or absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Group whose policy the volume shares, instead of a policy of its own; `none` or absent:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Allow minimums that exceed what the pool can guarantee.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// Changes of a volume; fields that are absent are unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeChange {
    /// Quota in bytes, as in its creation; not below what is stored. 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Reservation in bytes, as in its creation; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    /// Reads promote data to the fast tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<bool>,
    /// Ranges to pin to a tier, or to unpin; applied in order over the existing pins. At most 16
    /// pins may result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<PinChange>,
    /// Guaranteed fast-tier space in bytes, rounded up to a multiple of 4,096: data of other
    /// volumes is evicted first. 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Maximum fast-tier space in bytes, rounded likewise: beyond it nothing is promoted, and the
    /// volume's clean copies are evicted first. 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_ceiling: Option<u64>,
    /// How eagerly data is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Reaction>,
    /// Bytes per day that promotion may write to the fast tier, rounded likewise; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_budget: Option<u64>,
    /// Names of the initiators whose I/O bypasses placement, replacing the previous ones: at most
    /// 8, each of 1 to 223 bytes without control characters. Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<Vec<String>>,
    /// Performance target: IOPS, at most 10^9; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_iops: Option<u64>,
    /// Performance target: bandwidth in bytes per second, at most 2^40; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_bandwidth: Option<u64>,
    /// Performance target: p99 latency in nanoseconds, from 4,096 to an hour; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_latency_ns: Option<u64>,
    /// Quality-of-service policy, by name or number; `none` removes it. Setting it removes the
    /// volume from its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Group whose policy the volume shares, instead of a policy of its own; `none` removes the
    /// volume from its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Allow minimums that exceed what the pool can guarantee.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// Performance targets of a volume: an alert is raised when one is missed; nothing is enforced
/// (docs/events.md#target_unmet).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Targets {
    /// IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Bandwidth in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// p99 latency in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
}

/// A new size for a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeResize {
    /// New size in bytes.
    pub size: u64,
    /// Allow shrinking: data beyond the new size is lost.
    #[serde(default)]
    pub shrink: bool,
    /// Shrink the volume although hosts are connected to it.
    #[serde(default)]
    pub force: bool,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// Number of the volume in the pool.
    pub id: u32,
    /// Name of the volume.
    pub name: String,
    /// The pool.
    pub pool: String,
    /// Size in bytes, as seen by hosts.
    pub size: u64,
    /// Logical block size in bytes: 512 or 4,096.
    pub lba_size: u32,
    /// The full size is reserved.
    pub thick: bool,
    /// Drive failures that its data survives: those of its pool, over all vdrives of which it is
    /// spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<super::Protection>,
    /// Bytes written and not discarded.
    pub mapped: u64,
    /// Bytes that the volume and its snapshots store.
    #[serde(default)]
    pub held: u64,
    /// Quota: maximum of `held` in bytes; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Reservation: bytes guaranteed to the volume and its snapshots; absent: none, or the full
    /// size of a thick volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    /// Reserved bytes that are not used.
    #[serde(default)]
    pub reserved: u64,
    /// Bytes of the volume and its snapshots on the fast tier.
    #[serde(default)]
    pub fast: u64,
    /// Placement settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Performance targets; absent if none are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Targets>,
    /// Quality-of-service policy and what the volume attained; absent without a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<VolumeQos>,
    /// Stable identifier, used for serial numbers.
    pub serial: String,
    /// `online` or `deleting`.
    pub state: String,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Progress of a receive that is running or was interrupted; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiving: Option<Receiving>,
}

/// Progress of receiving a snapshot into a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receiving {
    /// Name that the snapshot will have.
    pub snapshot: String,
    /// Bytes from the start of the volume that are complete and durable.
    pub done: u64,
    /// Token for resuming the stream there (`resume` of the sender).
    pub token: String,
}

/// Result of receiving a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Received {
    /// The pool.
    pub pool: String,
    /// The volume.
    pub volume: String,
    /// The new snapshot.
    pub snapshot: String,
    /// Received bytes of data.
    pub data: u64,
    /// Bytes of zeroes that the stream described.
    pub zeroes: u64,
    /// Length of the stream in bytes.
    pub stream: u64,
}

/// List of volumes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeList {
    /// The volumes.
    pub items: Vec<Volume>,
}

/// A cell of a volume's map: its bytes by the tier that reads are served from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MapCell {
    /// Bytes in RAM.
    pub ram: u64,
    /// Bytes on the fast tier.
    pub fast: u64,
    /// Bytes on the slow tier.
    pub slow: u64,
    /// Bytes of holes.
    pub empty: u64,
    /// Accesses by hosts of the most accessed 64 KiB extent, bursts counted once; 15 means 15 or
    /// more.
    #[serde(default)]
    pub uses: u8,
}

/// Map of a volume by tier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeMap {
    /// Size of the volume in bytes.
    pub size: u64,
    /// Start of the mapped range in bytes.
    #[serde(default)]
    pub start: u64,
    /// Cells of equal size from there.
    pub cells: Vec<MapCell>,
}
