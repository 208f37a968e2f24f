//! Volumes.

use super::{PinChange, Placement, Reaction, VolumeQos};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

fn default_lba_size() -> u32 {
    512
}

/// A volume to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCreate {
    /// The pool that it is made in.
    pub pool: String,
    /// As a pool's name; unique in its pool.
    pub name: String,
    /// Bytes: a multiple of 4,096 of at least 1 MiB, at most 256 TiB.
    pub size: u64,
    /// 512 or 4,096.
    #[serde(default = "default_lba_size")]
    pub lba_size: u32,
    /// All of its space is reserved at once.
    #[serde(default)]
    pub thick: bool,
    /// The most bytes that it and its snapshots may store, rounded up to a multiple of 4,096, at most
    /// 1 EiB; 0 or nothing: as much as the pool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Bytes that the pool keeps for it and its snapshots, rounded up to a multiple of 4,096, at most
    /// its quota; 0 or nothing: none. Not for one that is thick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    /// Name or number of its quality-of-service policy; nothing, or `none`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Name of the group that it shares a policy with, instead of one of its own; nothing, or `none`: it shares none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// It may have the policy also when the pool cannot keep all minimums then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// What is to be changed of a volume; what is left out stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeChange {
    /// The most bytes that it and its snapshots may store, as when it was made; not less than they
    /// do. 0: as much as the pool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Bytes that the pool keeps for it and its snapshots, as when it was made; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    /// Whether reads bring something to the fast tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<bool>,
    /// Ranges that are pinned to a tier, or are no more: one after the other over those that were. At most 16
    /// are left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<PinChange>,
    /// Bytes on the fast tier up to which others give way first, rounded up to a multiple of 4,096; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Bytes on the fast tier beyond which it promotes nothing and gives way first, rounded in the same way;
    /// 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_ceiling: Option<u64>,
    /// How soon something is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Reaction>,
    /// Bytes a day that promotion may write to the fast tier, rounded in the same way; 0: as many as are
    /// worth it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_budget: Option<u64>,
    /// Names of the initiators whose reads and writes placement does not hear of, in place of those that were: at
    /// most 8, each of 1 to 223 bytes without control characters. An empty list: nobody is bypassed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass: Option<Vec<String>>,
    /// Operations a second that are expected of it, at most 10^9; 0: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_iops: Option<u64>,
    /// Bytes a second that are expected of it, at most 2^40; 0: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_bandwidth: Option<u64>,
    /// Nanoseconds within which 99 of 100 operations are expected to end, from 4,096 to an hour; 0: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_latency_ns: Option<u64>,
    /// Name or number of its quality-of-service policy; `none` takes it away. It leaves its group with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Name of the group that it shares a policy with from then on, instead of one of its own; `none` takes it out of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// It may have the policy also when the pool cannot keep all minimums then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// What is expected of a volume (docs/events.md#target_unmet).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Targets {
    /// Operations a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// Nanoseconds within which 99 of 100 operations are to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
}

/// A new size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeResize {
    /// Bytes.
    pub size: u64,
    /// It may become smaller: what lies beyond is lost.
    #[serde(default)]
    pub shrink: bool,
}

/// State of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Volume {
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
    /// Whether its space is reserved.
    pub thick: bool,
    /// Bytes written and not discarded.
    pub mapped: u64,
    /// Bytes that it and its snapshots store.
    #[serde(default)]
    pub held: u64,
    /// The most bytes that these may be; nothing: as much as the pool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Bytes that the pool keeps for it and its snapshots; nothing: none, or all of a thick one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    /// Bytes that are kept for it and that it does not store.
    #[serde(default)]
    pub reserved: u64,
    /// Bytes that it and its snapshots have on the fast tier.
    #[serde(default)]
    pub fast: u64,
    /// What was chosen for its placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What is expected of it, where something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Targets>,
    /// Its quality-of-service policy, where it has one, and what it attained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<VolumeQos>,
    /// Stable name for serial numbers.
    pub serial: String,
    /// `online` or `deleting`.
    pub state: String,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// The snapshot that it is being made to be, while it is received or when that was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiving: Option<Receiving>,
}

/// How far a volume is that is being received.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receiving {
    /// Name that the snapshot will have.
    pub snapshot: String,
    /// Bytes, from the first one on, that are as they will be, durably.
    pub done: u64,
    /// What `resume` of a stream takes to go on there.
    pub token: String,
}

/// What was received.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Received {
    /// The pool.
    pub pool: String,
    /// The volume.
    pub volume: String,
    /// The snapshot that it has now.
    pub snapshot: String,
    /// Bytes of data that came.
    pub data: u64,
    /// Bytes of zeroes that were told of.
    pub zeroes: u64,
    /// Bytes of the stream.
    pub stream: u64,
}

/// Volumes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeList {
    /// One entry a volume.
    pub items: Vec<Volume>,
}

/// Bytes of one part of a volume's LBA space by where they are read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MapCell {
    /// In RAM.
    pub ram: u64,
    /// On the fast tier.
    pub fast: u64,
    /// On the slow tier.
    pub slow: u64,
    /// Never written.
    pub empty: u64,
    /// Times that hosts used the extent of 64 KiB that they used most, bursts counted once; 15 stands for more,
    /// too.
    #[serde(default)]
    pub uses: u8,
}

/// Where a volume lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeMap {
    /// The volume's size in bytes.
    pub size: u64,
    /// The first byte that was looked at.
    #[serde(default)]
    pub start: u64,
    /// The bytes from there in equal parts.
    pub cells: Vec<MapCell>,
}
