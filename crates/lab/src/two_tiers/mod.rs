//! Two solid-state tiers: the performance of a pool relative to that of its drives together.
//!
//! Responsible for: the pools, the search for the best static split, the table.
//! Leaves out: the drives' limits (the `model` drive) and the load (`load`).

mod run;
mod split;
mod stage;

pub use run::run;
