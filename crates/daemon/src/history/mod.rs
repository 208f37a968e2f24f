//! Metrics of pools, tiers, vdrives, drives, volumes, policies and exports over time, in files of
//! fixed-size round-robin archives (docs/events.md).
//!
//! Responsible for: retention, storage and queries.
//! Leaves out: which counters are sampled and when (`manager/history.rs`).

mod counts;
mod first;
mod query;
mod record;
mod rings;
mod series;
mod store;

/// Version of the written files.
const FORMAT: u32 = 2;

pub use counts::{Counts, share_of_times, time, usual_size};
pub use query::{Query, QueryResult};
pub use series::{Kind, SERIES_MAX, Values};
pub use store::{Missing, Store};
