//! Other daemons, monitored by this one (docs/access.md).
//!
//! Responsible for: the stored list, and polling with limits while a client is interested.
//! Leaves out: the HTTP client (`remote`), the state of this daemon (`manager`).

mod known;
mod seen;

pub use known::Servers;
pub use seen::{SeenPool, ServerSummary};

#[cfg(test)]
mod known_tests;
