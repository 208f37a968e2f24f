//! What happened and what is wrong (docs/events.md).
//!
//! Responsible for: keeping events over restarts, and raising and clearing each alert once.
//! Leaves out: what is looked at (`manager/observe.rs`), and who is told (`delivery`).

mod store;
mod watch;

pub use store::{Events, Filter};
pub use watch::Finding;
