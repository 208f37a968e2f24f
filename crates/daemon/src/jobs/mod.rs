//! The list of jobs: the engine's, and what is sent and received, with numbers that outlive the daemon (docs/events.md).
//!
//! Responsible for: one number for a job from its beginning to its end, whichever daemons it lives through, and what
//! became of those that ended.
//! Leaves out: the work itself.

mod ledger;
mod own;

pub use ledger::{Fate, Ledger};
pub use own::OwnJob;
