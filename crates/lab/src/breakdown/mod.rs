//! Where a server's processor time goes under a load: samples by `perf`, grouped by the layer that a symbol
//! belongs to.
//!
//! Leaves out: who called whom. A copy is a copy, whichever layer asked for it.

mod arguments;
mod layers;
mod perf;
mod run;

pub use arguments::Breakdown;
pub use run::run;
