//! The storage engine: pools, volumes, and everything between an operation and a drive.
//!
//! Responsible for: where each block of a volume lies, that it is what was written, and that
//! what was acknowledged and flushed survives.
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
