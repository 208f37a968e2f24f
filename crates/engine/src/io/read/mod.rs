//! Reads: resolve each block by the map, read it from the RAM cache, the fast or the slow tier, verify its checksum.
//!
//! Of a clean copy, which two tiers have, that one is read which is expected to answer sooner (join the shortest expected
//! delay). A copy that fails its checksum is replaced from an intact one; without one, the host gets a medium error
//! and the block is named.

mod repair;
mod single_block;
pub(crate) mod slow_path;
mod tier_choice;
mod unrecoverable;
