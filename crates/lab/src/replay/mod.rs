//! `replay`: a block trace through the published policies, in one table.
//!
//! Responsible for: the sequence of blocks that a trace uses, and what share of them each policy would have had.
//! Leaves out: trace formats and policies, which have crates of their own.

mod blocks;
mod hits;
mod report;
mod run;

pub use run::run;
