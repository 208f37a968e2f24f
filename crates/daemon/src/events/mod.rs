//! Events and alerts (docs/events.md).
//!
//! Responsible for: storing events across restarts, and raising and clearing each alert once.
//! Leaves out: detecting conditions (`manager/observe.rs`), and notification (`delivery`).

mod filter;
mod store;
mod watch;

pub use filter::Filter;
pub use store::Events;
pub use watch::Finding;
