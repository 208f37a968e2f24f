//! The storm: hundreds of desktops boot beside a database, a mail server and a backup, without and with policies of quality
//! of service (docs/qos.md), in one run.
//!
//! Responsible for: the tenants' loads, the phases, and the conclusions: in which windows of 100 ms policy 1 got its
//! floor.
//! Leaves out: driving the sessions and counting their answers (`tenants`).

mod arguments;
mod chart;
mod desktop;
mod outcome;
mod postgres;
mod report;
mod run;
mod scene;
mod table;

pub use arguments::Storm;
pub use outcome::Judged;
pub use run::run;
