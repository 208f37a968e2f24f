//! Why a volume is slow: figures in, ranked causes out. Pure: history, status and time are passed in
//! (`manager/why.rs` gathers them).
//!
//! The mean latency of an I/O is divided among the stations that it passes: the gate of quality of
//! service, the queue of a tier, its drives (`split`). A station's part is assigned to a more
//! specific cause where the evidence shows one: a slow drive among its peers, or background work
//! that takes a share of a tier's bandwidth (`blame`). What is left is the station's own cause.
//!
//! Leaves out: percentiles by cause, which would need each I/O's path, and capacity planning
//! (`convect pool what-if`).

mod actions;
mod answer;
mod blame;
mod evidence;
mod findings;
mod split;
mod text;

#[cfg(test)]
mod tests;

pub use answer::answer;
pub use evidence::{
    AlertSeen, DriveLoad, Evidence, Load, PlacementSeen, PolicySeen, Sources, TierLoad, Work,
};
