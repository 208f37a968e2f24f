//! A volume as front ends see it: checks, routing to shards, joining what was split; who of them is bypassed.
//!
//! Leaves out: everything that happens inside a shard.

mod initiator;
mod join;
mod volume;

pub use format::shard_of_chunk;
pub use initiator::{InitiatorDevice, Initiators};
pub use volume::{Seen, VolumeDevice};
