//! Convect beside its peers: the same load to each in turn, several times, and the performance of each per core.
//!
//! Responsible for: starting the servers bound to one core, the rows, and the table.
//! Leaves out: the loads themselves (`load`).

mod arguments;
mod limit;
mod loop_device;
mod peers;
mod rows;
mod run;
mod stage;
mod system;
mod table;

pub use arguments::{Compare, Setup};
pub use run::run;
pub use stage::Stage;
pub use system::System;
