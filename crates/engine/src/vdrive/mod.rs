//! Vdrives: drives of one class under one layout.
//!
//! Responsible for: which drive and byte a block lies on, reading with verification, mending a
//! mirror's leg from the good one. Leaves out: what the blocks mean, and who may use them.

mod io;

pub use format::{Fragment, Layout};
pub use io::{Check, DriveShared, PartIo, VdriveIo};
