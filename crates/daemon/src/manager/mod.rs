//! What the daemon does, as plain blocking calls: the engine's, and exports on top of them.

mod core;
mod events;
mod explain;
mod exports;
mod figures;
mod fills;
mod goals;
mod history;
mod jobs;
mod live;
mod looks;
mod metrics;
mod mirrors;
mod observe;
mod playback;
mod pools;
mod ram;
mod receive;
mod reservations;
mod schedules;
mod scrubs;
mod send;
mod servers;
mod sessions;
mod smart;
mod snapshots;
mod tags;
mod targets;
mod uses;
mod volumes;
mod wear;
mod what_if;

pub use core::Manager;
pub use receive::Receiving;
pub use send::Sending;
pub use tags::Tag;
