//! Map history of volumes (docs/access.md#map-history).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Map of a volume at some time, or its changes since the previous frame.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MapFrame {
    /// Time of the sample, in seconds since 1970.
    pub at_s: u64,
    /// All cells, encoded as in a live map; absent if only `changed` is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// Changed cells, encoded as in a live map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}

/// Map history of a volume. Samples of the last hour are kept, one every ten seconds at most; fewer
/// with many volumes, or for a volume without I/O.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MapFrames {
    /// `POOL/VOLUME`.
    pub volume: String,
    /// Size of the volume in bytes.
    pub size: u64,
    /// Number of equal cells that the volume is divided into.
    pub cells: u32,
    /// Time of the latest sample, in seconds since 1970: until then the last frame is valid. 0
    /// without frames.
    pub last_s: u64,
    /// The map at `from`, or the first sample after it, then one frame for each sample with
    /// changes. Empty if the volume has not been sampled yet.
    pub frames: Vec<MapFrame>,
}
