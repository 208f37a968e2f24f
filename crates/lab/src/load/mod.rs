//! A load of 4 KiB random requests over NBD by a client of our own, seen second by second: how many,
//! how long each took, and for how long none was answered, which fio does not tell.
//!
//! Responsible for: keeping requests outstanding over all connections, and the figures.
//! Leaves out: what is measured, which the benchmarks say; checking what is read.

mod histogram;
mod lane;
mod run;
mod second;

pub use histogram::Histogram;
pub use run::{Load, run};
pub use second::{Second, Series, rows_of_ten};
