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
    /// What that pool wrote to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<super::Wear>,
    /// What it says of its health, where it is a disk of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<super::DriveHealth>,
    /// Why it could not be looked at; the other fields mean nothing then.
    pub error: Option<String>,
}

/// The drives of the open pools and the block devices of this host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriveList {
    /// One entry a drive.
    pub items: Vec<DriveReport>,
}

/// A drive to be found by its light.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveLocate {
    /// Its specification.
    pub drive: String,
    /// Whether the light at its slot is on.
    pub on: bool,
}

/// A drive to bring back into its mirrors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveOnline {
    /// Its specification, or its id.
    pub drive: String,
    /// Also when it was used without the pool's other drives: all of it is overwritten.
    #[serde(default)]
    pub force: bool,
}

/// A drive to take out of its mirrors.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveOffline {
    /// Its specification, or its id.
    pub drive: String,
}

/// A drive to put in another one's place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveReplace {
    /// The specification or the id of the old one, which may be missing.
    pub old: String,
    /// The specification of the new one, at least as large.
    pub new: String,
    /// Take a drive that bears something else, which is lost.
    #[serde(default)]
    pub force: bool,
}
