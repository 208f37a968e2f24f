//! Loads by clients of our own: vhost-user-blk, NBD, iSCSI and io_uring; seen second by second, with how long each request
//! took and for how long none was answered.
//!
//! Responsible for: which requests are sent and when, keeping them outstanding, checking what is read, and the
//! figures. Nothing is allocated for a request, and with one thread the same seed gives the same requests.
//! Leaves out: what is measured, which the benchmarks define.

mod aim;
mod arguments;
mod blocks;
mod command;
mod disk;
mod fill;
mod histogram;
mod lane;
mod pace;
mod plan;
mod port;
mod ports;
mod report;
mod run;
mod second;
mod shared;
#[cfg(test)]
mod tests;
mod verify;
mod versions;
mod wait;

pub use aim::{Aim, Pattern};
pub use arguments::Generate;
pub use blocks::Blocks;
pub use command::command;
pub use disk::{Disk, Opening};
pub use fill::{fill, scatter};
pub use histogram::Histogram;
pub use pace::{Arrivals, Pace, Rate};
pub use plan::{Content, Load};
pub use port::{Port, Request};
pub use report::Figures;
pub use run::{Watched, measure, run};
#[cfg(test)]
pub use second::Answer;
pub use second::{Second, Series, rows_of_ten};
pub use versions::Versions;
pub use wait::{wait, watch};
