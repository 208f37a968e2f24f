//! Drives that take as long as another kind of drive would: a model of service times around any
//! drive that keeps the data.
//!
//! `service`, `geometry`, `dirty`, `readahead`, `disk` and `ssd` are the mechanics: they do no
//! I/O and get the time as an argument. `drive` and `queue` drive them by a loop's clock, real or simulated.

mod dirty;
mod disk;
mod drive;
mod geometry;
mod profile;
mod queue;
mod readahead;
mod service;
mod ssd;

pub(crate) use drive::KIND;
pub use profile::{Profile, profiles};
