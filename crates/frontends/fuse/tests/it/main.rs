//! Volumes as files of a FUSE file system.

mod file;
mod loop_device;
mod mount;
mod support;
