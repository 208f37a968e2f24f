//! FUSE: volumes as files in a directory, for any program, loop devices, Samba or NFS.
//!
//! Responsible for: mounts, the directory's files, and requests of any alignment, which are
//! converted to operations on whole LBAs. A write is answered when the engine has completed it:
//! files are opened for direct I/O, which bypasses the page cache (except for shared memory maps,
//! which `msync` flushes).
//! Leaves out: file operations that volumes do not support: create, remove, rename, truncate.
//! Owner and mode of a file are parameters of its export and change only with these.

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
