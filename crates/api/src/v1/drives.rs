//! Drives, whether in a pool or not.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A drive to look at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveProbe {
    /// Its specification, e.g. `file:/dev/nvme0n1`.
    pub spec: String,
}

/// What is found on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveReport {
    /// The specification that opens it.
    pub spec: String,
    /// Bytes.
    pub size: u64,
    /// Logical sector in bytes.
    pub logical_sector: u32,
    /// Physical sector in bytes.
    pub physical_sector: u32,
    /// `solid`, `spinning` or `unknown`.
    pub rotation: String,
    /// Whether a flush matters.
    pub write_cache: bool,
    /// What it bears, by name (`ext4 filesystem`, `GPT partition table`, `convect pool NAME`).
    pub found: Option<String>,
    /// The pool that uses it now.
    pub pool: Option<String>,
    /// Why it could not be looked at; the other fields mean nothing then.
    pub error: Option<String>,
}

/// The drives of the open pools and the block devices of this host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveList {
    /// One entry a drive.
    pub items: Vec<DriveReport>,
}
