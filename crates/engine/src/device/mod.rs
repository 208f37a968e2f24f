//! A volume as front ends see it: checks, routing to shards, joining of split operations; initiators.
//!
//! Leaves out: everything that happens inside a shard.

mod initiator;
mod join;
mod long;
mod opened;
mod volume;

pub use format::shard_of_chunk;
pub use initiator::{Initiator, Initiators};
pub use opened::{ExportNumber, OpenedDevice};
pub use volume::{Seen, VolumeDevice};
