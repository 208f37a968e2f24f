//! Where a block is stored, and why (docs/placement.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A 64 KiB extent of a volume or snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExtentPlace {
    /// The volume, or `VOLUME@SNAPSHOT`; absent if it has been deleted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Offset of the extent in bytes.
    pub offset: u64,
}

/// A move of blocks of one extent between tiers. Moves of an extent for one reason within a second
/// are one entry.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Move {
    /// Time, in seconds since 1970.
    pub at_s: u64,
    /// Source: `host`, `ram`, `fast`, `slow` or `any`.
    pub from: String,
    /// Destination: `ram`, `fast`, `slow`, `any`, or `nowhere` if the blocks became holes.
    pub to: String,
    /// A copy was evicted: nothing was written, and `to` is where the block remains.
    pub dropped: bool,
    /// Name of the reason, unique together with `from` and `to`; `about` describes it. Older names
    /// are kept: `knobs` (settings of the volume prevent promotion), `sank_…` (demoted), `packed_…`
    /// (demoted, packed with blocks of other chunks), `foreseen` (sequence prefetch), `spared`
    /// (compaction), `cleared` (evacuation), `mended` (repair).
    pub reason: String,
    /// Description of the reason.
    pub about: String,
    /// Numbers of the moved 4 KiB blocks within the extent, 0 to 15.
    pub blocks: Vec<u8>,
    /// Worth of the extent at that time, where it was decisive: expected accesses per block
    /// accessed by hosts, for each block that the extent occupies on the fast tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<f64>,
    /// Worth that it was compared with: for a promotion the worth required, for an eviction the
    /// recent worth of victims. Absent while there was free space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<f64>,
    /// Extent that was evicted to make room: from RAM for this one; from the fast tier the one
    /// evicted last, before this one took its space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displaced: Option<ExtentPlace>,
}

/// A byte address on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrivePlace {
    /// Drive specification.
    pub drive: String,
    /// Offset in bytes.
    pub byte: u64,
}

/// A location of a block.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BlockPlace {
    /// `ram`, `fast` or `slow`.
    pub tier: String,
    /// Role of this copy. `only`: dirty, the only copy except one in RAM; `copy`: clean copy of
    /// data on the slow tier; `home`: at the chunk's home location on the slow tier; `packed`: on
    /// the slow tier, packed with other blocks because its 1 MiB chunk stores little.
    pub kind: String,
    /// Number of the vdrive; absent for RAM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vdrive: Option<u8>,
    /// Drives that have the block, and its address on each.
    pub drives: Vec<DrivePlace>,
    /// The move that placed it there; with the reason `merged` it was there before. Absent if the
    /// log does not go back that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came: Option<Move>,
    /// Start of the time for which the log of such moves is complete, in seconds since 1970.
    pub log_since_s: u64,
}

/// Access frequency of an extent, and what the placement policy derives from it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExtentHeat {
    /// Accesses by hosts, bursts counted once; 15 means 15 or more.
    pub uses: u8,
    /// Bytes that hosts accessed in the same shard since its last access, approximately.
    pub idle_bytes: u64,
    /// Worth of the extent: expected accesses per block accessed by hosts, for each block that it
    /// occupies on the fast tier.
    pub worth: f64,
    /// Recent worth of extents evicted from the fast tier, in the same unit.
    pub bar: f64,
    /// Worth required for promotion now, in the same unit; 0 while there is free space.
    pub wanted: f64,
}

/// Where a block is stored, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The requested logical block.
    pub lba: u64,
    /// Offset in bytes of the 4 KiB block that contains it.
    pub offset: u64,
    /// Offset in bytes of the 64 KiB extent that contains it.
    pub extent: u64,
    /// The block has not been written since a snapshot was taken, and is shared with it.
    pub inherited: bool,
    /// That snapshot, as `VOLUME@SNAPSHOT`; absent if it has been deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Locations of the block, fastest tier first; empty for a hole.
    pub places: Vec<BlockPlace>,
    /// Access frequency of its extent; absent if no host has accessed it since the pool was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<ExtentHeat>,
    /// Latest moves of its extent, newest first: at most eight that concern only RAM, and eight
    /// others.
    pub moves: Vec<Move>,
    /// Start of the time for which the log of moves is complete, except those that concern only
    /// RAM; in seconds since 1970.
    pub log_since_s: u64,
    /// The log is complete since the pool was opened.
    pub log_is_whole: bool,
}

/// Moves in one direction for one reason since the pool was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MoveCount {
    /// Source, as in a move.
    pub from: String,
    /// Destination, as in a move.
    pub to: String,
    /// Evictions: nothing was written.
    pub dropped: bool,
    /// Name of the reason, as in a move.
    pub reason: String,
    /// Description of the reason.
    pub about: String,
    /// Number of moves of extents or parts of extents.
    pub moves: u64,
    /// Bytes that were moved, or whose copies were evicted.
    pub bytes: u64,
}

/// Moves by direction and reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MoveCountList {
    /// One entry per direction and reason, including those with no moves.
    pub items: Vec<MoveCount>,
}
