//! Recorded maps of volumes of the last hour (docs/access.md).
//!
//! Responsible for: storage, retention and memory limits.
//! Leaves out: when volumes are recorded (`manager`), the encoding of maps (`live`).

mod recorded;

pub use recorded::{EVERY_S, IDLE_S, PastMap, Recorded, cells_for};

#[cfg(test)]
mod recorded_tests;
