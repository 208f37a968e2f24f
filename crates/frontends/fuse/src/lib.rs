//! Volumes as files of a folder: any program, a loop device, Samba or NFS can use them.
//!
//! Responsible for: the mount and its end, the folder's files, and requests of any alignment,
//! which become operations on whole LBAs. A write is answered when the engine has answered it:
//! files are opened for direct I/O, so no page cache stands in between (a shared memory map has
//! one, which `msync` empties).
//! Leaves out: anything that a volume is not: files cannot be made, removed, renamed or cut.
//! Owner and mode of a file are parameters of its export, and change with these alone.

mod directory;
mod errors;
mod export;
mod file;
mod filesystem;
mod flight;
mod folder;
mod front_end;
mod mount;
mod parameters;
mod ranges;
mod requests;
mod stale;
mod steps;

pub use front_end::FRONT_END;
