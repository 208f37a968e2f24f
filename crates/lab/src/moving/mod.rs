//! A hot set that moves: how soon a volume is as fast as its flash again.
//!
//! Responsible for: the sets, the order of the measurements, when it counts as warm.
//! Leaves out: making the pool (`scene`) and the load (`load`).

mod hot_set;
mod run;
mod watch;

pub use run::run;
