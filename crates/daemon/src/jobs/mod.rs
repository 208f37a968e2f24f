//! The list of jobs of the engine and of snapshot streams, with numbers that survive restarts
//! (docs/events.md).
//!
//! Responsible for: one number per job across restarts, and the outcome of finished jobs.
//! Leaves out: the work itself.

mod ledger;
mod own;

pub use ledger::{Fate, Ledger};
pub use own::OwnJob;
