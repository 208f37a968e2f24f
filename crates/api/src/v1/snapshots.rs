//! Snapshots and clones (docs/snapshots.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A snapshot to create, of several volumes atomically.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotCreate {
    /// The pool.
    pub pool: String,
    /// The volumes.
    pub volumes: Vec<String>,
    /// Name of the snapshot, the same for each volume; unique in each volume.
    pub name: String,
}

/// Changes of a snapshot; fields that are absent are unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotChange {
    /// New name.
    #[serde(default)]
    pub name: Option<String>,
    /// `true` holds the snapshot, which prevents its deletion; `false` releases it.
    #[serde(default)]
    pub held: Option<bool>,
}

/// A clone to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotClone {
    /// Name of the new volume, in the same pool.
    pub name: String,
}

/// A rollback of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeRollBack {
    /// Name of the snapshot to roll back to.
    pub snapshot: String,
    /// Roll back although the volume is exported: its hosts are disconnected, and may connect again
    /// afterwards.
    #[serde(default)]
    pub force: bool,
}

/// A snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Name of the snapshot.
    pub name: String,
    /// The volume.
    pub volume: String,
    /// The pool.
    pub pool: String,
    /// Size of the volume at that time, in bytes.
    pub size: u64,
    /// Bytes written between the previous snapshot and this one that are still referenced.
    pub stored: u64,
    /// Bytes that nothing else references: what its deletion would free. Absent if the requested
    /// time did not suffice to compute it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<u64>,
    /// Creation time, in seconds since 1970.
    pub created_s: u64,
    /// The snapshot is held and cannot be deleted.
    pub held: bool,
    /// Its clones.
    pub clones: Vec<String>,
    /// Schedule that took it and may delete it; null if none.
    pub schedule: Option<String>,
    /// Unique identity of its content, the same in every pool that received it.
    pub identity: String,
}

/// Result of promoting a clone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Promotion {
    /// Volume that had the snapshots, which is a clone now.
    pub parent: String,
    /// Snapshots that the promoted volume took over, oldest first.
    pub snapshots: Vec<String>,
}

/// A range that differs from a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedRange {
    /// Start of the range in bytes.
    pub offset: u64,
    /// Length in bytes: whole 4 KiB blocks.
    pub len: u64,
    /// The range contains data; otherwise it reads as zeroes.
    pub data: bool,
}

/// Differences of a volume or a snapshot from an earlier snapshot, or a page of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotDiff {
    /// Size of the compared volume or snapshot in bytes.
    pub size: u64,
    /// Changed ranges, in ascending order.
    pub ranges: Vec<ChangedRange>,
    /// Value of `start` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// List of snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    /// Snapshots, oldest first.
    pub items: Vec<Snapshot>,
}
