//! What the daemon does, as plain blocking calls: the engine's, and exports on top of them.

mod core;
mod exports;
mod fills;
mod mirrors;
mod pools;
mod schedules;
mod scrubs;
mod snapshots;
mod volumes;

pub use core::Manager;
