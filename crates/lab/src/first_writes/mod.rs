//! First writes to cold data, and what follows: what they wrote sinks beside others, and the fast tier
//! runs full.
//!
//! Responsible for: the phases, what the pool says of itself in each second, the tables.
//! Leaves out: making the pool (`scene`) and the load (`load`).

mod phase;
mod run;
mod table;

pub use run::run;
