//! The state folder: what the daemon keeps beside its pools.
//!
//! Responsible for: its lock, the list of pools, and reading and writing files there so that a folder that is full,
//! read-only or damaged costs what cannot be kept, and never the service.
//! Leaves out: what the files say.

mod files;
mod folder;
mod json_store;

pub use files::{StateFiles, Trouble, write_whole};
pub use folder::{KnownPool, StateDir};
pub use json_store::JsonStore;
