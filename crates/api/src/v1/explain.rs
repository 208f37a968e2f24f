//! Why a block lies where it does (docs/placement.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An extent of 64 KiB of some volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExtentPlace {
    /// The volume, or `VOLUME@SNAPSHOT`; nothing when that was deleted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Its first byte there.
    pub offset: u64,
}

/// A move of blocks of one extent; what happened to it within a second for one reason is one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Move {
    /// When: seconds since 1970.
    pub at_s: u64,
    /// `host`, `ram`, `fast`, `slow` or `any`.
    pub from: String,
    /// `ram`, `fast`, `slow`, `any`, or `nowhere` when the blocks became zeroes.
    pub to: String,
    /// A copy was given up: nothing was written, and the block is left at `to`.
    pub dropped: bool,
    /// The reason's name; with `from` and `to` it says which.
    pub reason: String,
    /// The reason in words.
    pub about: String,
    /// Which 4 KiB blocks of the extent, by their numbers from 0 to 15.
    pub blocks: Vec<u8>,
    /// What the extent was worth then, where that decided: uses to be expected while hosts use a block,
    /// for each block that it keeps on the fast tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<f64>,
    /// What that was held against; nothing while there was room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<f64>,
    /// What had left RAM for it, or the fast tier last before room there was taken for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displaced: Option<ExtentPlace>,
}

/// A byte of a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrivePlace {
    /// The drive, as it was named.
    pub drive: String,
    /// The byte.
    pub byte: u64,
}

/// A place where a block lies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BlockPlace {
    /// `ram`, `fast` or `slow`.
    pub tier: String,
    /// `only`: it is nowhere else but perhaps in RAM; `copy`: the slow tier has the same; `home`: in a place
    /// that its whole 1 MiB has on the slow tier; `packed`: on the slow tier with others, as its 1 MiB holds
    /// little.
    pub kind: String,
    /// The vdrive; nothing in RAM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vdrive: Option<u8>,
    /// The drives that have it, and where.
    pub drives: Vec<DrivePlace>,
    /// What brought it there; with the reason `merged` it had come before that. Nothing when the log does
    /// not go back so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came: Option<Move>,
    /// Since then the log has all that could have: seconds since 1970.
    pub log_since_s: u64,
}

/// How hot an extent is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExtentHeat {
    /// Times that hosts used it, bursts counted once; 15 stands for more, too.
    pub uses: u8,
    /// Bytes that hosts used of the same part of the pool since its last use, about.
    pub idle_bytes: u64,
    /// Uses to be expected while hosts use a block, for each block that it keeps on the fast tier.
    pub worth: f64,
    /// What those are worth, in the same unit, that leave the fast tier of late.
    pub bar: f64,
    /// What one has to be worth to rise to the fast tier now; 0 while there is room.
    pub wanted: f64,
}

/// Where a block lies, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The logical block that was asked for.
    pub lba: u64,
    /// First byte of the 4 KiB block that has it.
    pub offset: u64,
    /// First byte of that block's extent of 64 KiB.
    pub extent: u64,
    /// It was not written since a snapshot was taken, which has it in common with the volume.
    pub inherited: bool,
    /// That snapshot as `VOLUME@SNAPSHOT`, unless it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Where it lies, the fastest first; nowhere when it is zeroes.
    pub places: Vec<BlockPlace>,
    /// How hot its extent is; nothing when no host used that since the pool was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<ExtentHeat>,
    /// The last moves of its extent, the newest first: at most eight that concern RAM alone and eight others.
    pub moves: Vec<Move>,
    /// Since then the log has every move but those that concern RAM alone: seconds since 1970.
    pub log_since_s: u64,
    /// That is since the pool was opened.
    pub log_is_whole: bool,
}

/// How often something was moved for a reason since the pool was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MoveCount {
    /// As a move's.
    pub from: String,
    /// As a move's.
    pub to: String,
    /// As a move's.
    pub dropped: bool,
    /// The reason's name.
    pub reason: String,
    /// The reason in words.
    pub about: String,
    /// Moves of an extent or a part of one.
    pub moves: u64,
    /// Bytes that they moved, or of the copies that were given up.
    pub bytes: u64,
}

/// How often what was moved for each reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MoveCountList {
    /// One entry a reason and way, also for those that did not occur.
    pub items: Vec<MoveCount>,
}
