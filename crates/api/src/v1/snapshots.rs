//! Snapshots and clones.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A snapshot to be taken, of several volumes at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotCreate {
    /// The pool.
    pub pool: String,
    /// The volumes.
    pub volumes: Vec<String>,
    /// The snapshot's name, the same for each volume; unique for each.
    pub name: String,
}

/// What is to be changed of a snapshot; what is left out stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotChange {
    /// Another name.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether it is kept from being deleted.
    #[serde(default)]
    pub held: Option<bool>,
}

/// A volume that begins as a snapshot is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotClone {
    /// The new volume's name.
    pub name: String,
}

/// What a volume is rolled back to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeRollBack {
    /// The snapshot's name.
    pub snapshot: String,
}

/// State of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// The volume.
    pub volume: String,
    /// The pool.
    pub pool: String,
    /// Size of the volume then, in bytes.
    pub size: u64,
    /// Bytes that were written between the snapshot before and this one, and that are still kept.
    pub stored: u64,
    /// Bytes that nothing else has: what deleting it would free. Not there where finding it took
    /// longer than was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<u64>,
    /// When it was taken: seconds since 1970.
    pub created_s: u64,
    /// It is not deleted while this is set.
    pub held: bool,
    /// Volumes that were cloned from it.
    pub clones: Vec<String>,
    /// The schedule that took it and may delete it.
    pub schedule: Option<String>,
    /// What it holds: the same in every pool that received it, and never another's.
    pub identity: String,
}

/// What a clone took over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Promotion {
    /// The volume that had them, which is a clone now.
    pub parent: String,
    /// Names of the snapshots, oldest first.
    pub snapshots: Vec<String>,
}

/// A range that is not as in a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedRange {
    /// First byte.
    pub offset: u64,
    /// Length in bytes: whole blocks of 4 KiB.
    pub len: u64,
    /// It holds data; otherwise it reads as zeroes.
    pub data: bool,
}

/// What a volume or a snapshot has otherwise than a snapshot, or a part of that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotDiff {
    /// Size in bytes of what is compared.
    pub size: u64,
    /// What changed, in order.
    pub ranges: Vec<ChangedRange>,
    /// Where to go on: `start` of the next request. Not there when this was all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    /// One entry a snapshot, oldest first.
    pub items: Vec<Snapshot>,
}
