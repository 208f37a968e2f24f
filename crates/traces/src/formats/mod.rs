//! The formats: a table with one row for each, and a file for each reader.

mod blkparse;
mod blktrace;
mod csv;
mod fio_iolog;
mod lis;
mod msr;
mod oracle_general;
mod table;
mod vscsi;

pub use table::{Format, UnknownFormat};
pub(crate) use table::{names, recognise};
