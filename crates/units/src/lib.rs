//! The quantities that the rest of Convect talks in, as types that cannot be mixed up.
//!
//! Responsible for: identifiers, block arithmetic, sizes as people write them, and the calendar.
//! Leaves out: anything with behaviour of its own, and every dependency.

mod calendar;
mod division;
pub mod hash;
mod ids;
pub mod invariant;
pub mod mutation;
mod prefetch;
mod size;

pub use calendar::{Utc, roughly};
pub use division::div_rem;
pub use ids::{BlockNo, ChunkNo, DriveId, Place, PoolId, ShardId, SnapshotId, VdriveId, VolumeId};
pub use prefetch::{Coming, Fetching, prefetch};
pub use size::{SizeError, format_bytes, parse_bytes};

/// The unit of atomicity, checksum and absorbed writes, in bytes.
pub const BLOCK: usize = 4096;
/// The unit of heat and of a probing fetch, in bytes.
pub const EXTENT: usize = 64 << 10;
/// The unit of home placement, in bytes.
pub const CHUNK: usize = 1 << 20;
/// Blocks in an extent.
pub const EXTENT_BLOCKS: usize = EXTENT / BLOCK;
/// Blocks in a chunk.
pub const CHUNK_BLOCKS: usize = CHUNK / BLOCK;
/// Extents in a chunk.
pub const CHUNK_EXTENTS: usize = CHUNK / EXTENT;
