//! How pools, tiers, vdrives, drives, volumes, policies and exports did over time, in a file of fixed size for each (docs/events.md).
//!
//! Responsible for: what is kept, for how long, and what is told of it.
//! Leaves out: what is counted and when it is looked at (`manager/history.rs`).

mod counts;
mod first;
mod query;
mod record;
mod rings;
mod series;
mod store;

/// The version of the files that is written.
const FORMAT: u32 = 2;

pub use counts::{Counts, share_of_times, time, usual_size};
pub use query::{Found, Query};
pub use series::{Kind, SERIES_MAX, Values};
pub use store::{Missing, Store};
