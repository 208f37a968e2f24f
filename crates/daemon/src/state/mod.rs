//! The state folder: persistent state of the daemon outside of its pools.
//!
//! Responsible for: its lock, the list of pools, and file access such that a full, read-only or
//! damaged folder loses at most what cannot be stored, but never stops the service.
//! Leaves out: the content of the files.

mod files;
mod folder;
mod json_store;

pub use files::{StateFiles, Trouble, write_whole};
pub use folder::{KnownPool, StateDir};
pub use json_store::JsonStore;
