//! The ways to a disk: a file each.

mod file;
mod memory;
mod nbd;
mod vhost_user_blk;

pub(super) use file::FilePort;
pub(super) use nbd::NbdPort;
pub(super) use vhost_user_blk::VhostPort;
