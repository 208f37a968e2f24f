//! The demonstration: a tiered pool that gets faster while it is used, compared with its slow tier
//! alone and with its fast drive without a pool.
//!
//! Responsible for: the order of the measurements, the table, the map, the report.
//! Leaves out: making the pool (`scene`) and the load (`fio`).

mod attach;
mod measure;
mod outcome;
mod report;
mod run;
mod strip;
mod svg;
mod table;

pub use outcome::Shares;
pub use run::run;
