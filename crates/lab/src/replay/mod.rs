//! `replay`: block traces through Convect's policy and the published ones, in one table.
//!
//! Responsible for: the behaviour of each policy on the requests of a trace, and its cost in a
//! model of the drives; or that of a live pool (`live`). Leaves out: trace formats and policies, which have crates of their own.

mod blocks;
mod cost;
mod forecast;
mod hits;
mod live;
mod report;
mod run;
mod shipping;
mod summary;
mod tiered;

pub use run::run;
