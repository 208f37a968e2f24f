//! Decisions about where data should be: pure functions of what happened, without I/O or clock.
//!
//! Responsible for: how much a miss fetches. Leaves out: carrying decisions out.

mod regions;

pub use regions::{Fetch, Regions};
