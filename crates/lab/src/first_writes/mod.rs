//! First writes to cold data, and what follows: their data is demoted beside other load, and the fast tier
//! runs full.
//!
//! Responsible for: the phases, the pool's status in each second, the tables.
//! Leaves out: making the pool (`scene`) and the load (`load`).

mod phase;
mod run;
mod table;

pub use run::run;
