//! The cost of snapshots and clones for hosts.
//!
//! Responsible for: the order of the measurements (`run`), each of which is a file. Leaves out: making the
//! pool (`scene`) and the load (`fio`).

mod cloning;
mod deleting;
mod many;
mod overlay;
mod pipeline;
mod reading;
mod run;
mod taking;
mod writing;

pub use run::run;
