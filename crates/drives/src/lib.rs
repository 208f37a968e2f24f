//! The kinds of drives: files and block devices, memory, nothing, and models of disks.
//!
//! Responsible for: opening a drive from its text form ([`open`]), carrying out the requests of
//! [`block::DriveQueue`], recognising what a drive contains ([`found_on`]), and memory that outlives the process
//! ([`LastingFiles`]).
//! Leaves out: pools and their labels, which the engine recognises itself.
//!
//! A kind is a folder and one row of the table in `registry.rs`.

mod check;
mod error;
mod given;
mod lasting;
mod made;
mod model;
mod null;
mod nvme;
mod ram;
mod registry;
mod signature;
mod spec;
mod uring;

pub use error::{OpenError, OpenErrorKind};
pub use given::{give, give_number};
pub use lasting::LastingFiles;
pub use made::{MadeFile, make_file};
pub use model::{Profile, profiles};
pub use ram::forget_ram;
pub use registry::{
    DriveIdentity, DriveKind, OpenDrive, canonical, found_on, identity, is_same_drive, kinds, open,
    open_read_only,
};
pub use signature::signature;
pub use spec::{SIZE_MIN, file_path};
