//! Maps of volumes as they were in the last hour (docs/access.md).
//!
//! Responsible for: what is kept of them, and how much memory that takes.
//! Leaves out: looking at volumes and how often (`manager`), how a map is told (`live`).

mod recorded;

pub use recorded::{EVERY_S, IDLE_S, Recorded, Was, cells_for};

#[cfg(test)]
mod recorded_tests;
