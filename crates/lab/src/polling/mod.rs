//! What waiting costs: an export's three ways of polling by five loads.
//!
//! Responsible for: the same load to each in turn, and what the figures come to beside busy polling's.
//! Leaves out: the loads themselves (`load`).

mod arguments;
mod run;
mod table;

pub use arguments::Waiting;
pub use run::run;
