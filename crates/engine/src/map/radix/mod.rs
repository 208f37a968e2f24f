//! Radix trees of 4 KiB pages, partly in memory.
//!
//! Responsible for: which nodes are loaded or changed, and the order in which a checkpoint writes
//! them. Leaves out: all I/O; a caller that meets a node that is not loaded loads it and retries.

mod node;

pub use node::{DirtyNodes, Lookup, Tree};
