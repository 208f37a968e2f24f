//! What happened and what is wrong (docs/events.md).
//!
//! Responsible for: keeping events over restarts, and raising and clearing each alert once.
//! Leaves out: what is looked at (`manager/observe.rs`), and who is told (`delivery`).

mod filter;
mod store;
mod watch;

pub use filter::Filter;
pub use store::Events;
pub use watch::Finding;
