//! Drives, in pools and unused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A drive to probe.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveProbe {
    /// Drive specification, for example `file:/dev/nvme0n1`.
    pub spec: String,
}

/// Properties and contents of a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveReport {
    /// Drive specification.
    pub spec: String,
    /// Size in bytes.
    pub size: u64,
    /// Logical sector size in bytes.
    pub logical_sector: u32,
    /// Physical sector size in bytes.
    pub physical_sector: u32,
    /// `solid`, `spinning` or `unknown`.
    pub rotation: String,
    /// The drive has a volatile write cache: writes are durable only after a flush.
    pub write_cache: bool,
    /// Signature found on the drive (`ext4 filesystem`, `GPT partition table`,
    /// `convect pool NAME`), or null.
    pub found: Option<String>,
    /// Open pool that uses the drive, or null.
    pub pool: Option<String>,
    /// Bytes that this pool has written to it, by purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<super::Wear>,
    /// SMART health; only for disks of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<super::DriveHealth>,
    /// Why the drive could not be probed; all other fields are then meaningless.
    pub error: Option<String>,
}

/// Drives of the open pools, and block devices of this host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveList {
    /// The drives.
    pub items: Vec<DriveReport>,
}

/// Locate LED of a drive's slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveLocate {
    /// Drive specification.
    pub drive: String,
    /// Switch the LED on or off.
    pub on: bool,
}

/// A drive to bring back online.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveOnline {
    /// Drive specification, or id of the drive.
    pub drive: String,
    /// Accept a drive that was used without the pool's other drives; it is overwritten completely.
    #[serde(default)]
    pub force: bool,
}

/// A mirror member to take offline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveOffline {
    /// Drive specification, or id of the drive.
    pub drive: String,
}

/// A mirror member to replace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveReplace {
    /// Specification or id of the old drive, which may be missing.
    pub old: String,
    /// Specification of the new drive, which must be at least as large.
    pub new: String,
    /// Overwrite a drive that contains other data (destroys it).
    #[serde(default)]
    pub force: bool,
}
