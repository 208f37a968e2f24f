//! The engine as the control plane holds it.

mod engine;
pub mod explain;
pub mod import;
mod jobs;
pub mod knobs;
pub mod look;
mod pace;
pub mod qos;
mod snapshots;
pub mod spread;
pub mod types;
mod wait;
pub mod wear;
pub mod what_if;

pub use engine::Engine;
pub(crate) use jobs::{Jobs, busy};
pub(crate) use wait::wait_for;
