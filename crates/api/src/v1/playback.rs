//! Where volumes lay (docs/access.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A volume's map at a moment, or what changed of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MapFrame {
    /// When it was seen so first: seconds since 1970.
    pub at_s: u64,
    /// All parts, as a live map's. Nothing when only parts changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// The parts that changed, as a live map's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}

/// Where a volume lay. A look every ten seconds is kept at most, for an hour; fewer where there are many volumes, or where
/// nothing was done with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MapFrames {
    /// `POOL/VOLUME`.
    pub volume: String,
    /// The volume's size in bytes.
    pub size: u64,
    /// Into how many equal parts it is cut.
    pub cells: u32,
    /// When it was looked at last: seconds since 1970. Up to then it is as the last frame says. 0 with no frame.
    pub last_s: u64,
    /// The map at `from`, or when it was looked at first, then each time that it was seen to be another. None when it was
    /// not looked at yet.
    pub frames: Vec<MapFrame>,
}
