//! The ways to a disk: a file each.

mod file;
mod iscsi;
mod memory;
mod nbd;
mod vhost_user_blk;

pub(super) use file::FilePort;
pub(super) use iscsi::IscsiPort;
pub(super) use nbd::NbdPort;
pub(super) use vhost_user_blk::VhostPort;
