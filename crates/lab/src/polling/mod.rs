//! The cost of waiting: an export's three polling modes under five loads.
//!
//! Responsible for: the same load to each in turn, and their figures relative to busy polling.
//! Leaves out: the loads themselves (`load`).

mod arguments;
mod run;
mod table;

pub use arguments::Waiting;
pub use run::run;
