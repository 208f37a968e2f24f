//! Reads: resolve each block by the map, read it from the RAM cache, the fast or the slow tier, verify its checksum.
//!
//! A clean copy, which two tiers have, is read from the tier that is expected to respond sooner (join the shortest expected
//! delay). A copy that fails its checksum is replaced from an intact one; without one, the host gets a medium error
//! and the block is reported.

mod repair;
mod single_block;
pub(crate) mod slow_path;
pub(crate) mod target;
mod tier_choice;
mod unrecoverable;
