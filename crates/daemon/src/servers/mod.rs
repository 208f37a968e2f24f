//! Other daemons, looked at from this one (docs/access.md).
//!
//! Responsible for: which there are, kept in the state folder; asking them, bounded, while somebody looks.
//! Leaves out: the way to them (`remote`), what is known of this one (`manager`).

mod known;
mod seen;

pub use known::Servers;
pub use seen::{Seen, SeenPool};

#[cfg(test)]
mod known_tests;
