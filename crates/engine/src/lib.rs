//! The storage engine: pools, volumes, and everything between an operation and a drive.
//!
//! Responsible for: the location of each block of a volume, its integrity, and that
//! acknowledged and flushed data survives.
//! Leaves out: front ends, protocols, HTTP, and the operating system's clock (see `reactor`).

pub mod bench;
mod cache;
mod checkpoint;
mod control;
mod device;
pub mod harness;
mod io;
mod maintenance;
mod map;
mod pool;
mod recovery;
mod shard;
mod space;
mod tiering;
mod vdrive;
mod wal;

pub use control::Engine;
pub use control::explain::*;
pub use control::import::*;
pub use control::knobs::*;
pub use control::look::*;
pub use control::qos::*;
pub use control::spread::*;
pub use control::types::*;
pub use control::wear::*;
pub use control::what_if::*;
pub use shard::Audit;
