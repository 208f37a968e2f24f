//! Two tiers that are both solid-state: what a pool gives of what its drives could give together.
//!
//! Responsible for: the pools, the search for the best static split, the table.
//! Leaves out: the drives' limits (the `model` drive) and the load (`load`).

mod run;
mod split;
mod stage;

pub use run::run;
