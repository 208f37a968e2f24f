//! A volume as front ends see it: checks, routing to shards, joining what was split.
//!
//! Leaves out: everything that happens inside a shard.

mod join;
mod volume;

pub use format::shard_of_chunk;
pub use volume::{Seen, VolumeDevice};
