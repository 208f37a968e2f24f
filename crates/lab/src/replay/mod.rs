//! `replay`: block traces through Convect's policy and the published ones, in one table.
//!
//! Responsible for: what each policy does with the requests of a trace, and what that costs in a
//! model of the drives; or what a live pool does with them (`live`). Leaves out: trace formats and policies, which have crates of their own.

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
