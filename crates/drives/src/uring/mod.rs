//! Files and block devices, through io_uring and past the page cache.

mod busy;
mod discover;
mod drive;
mod open;
mod queue;

pub(crate) use busy::patiently;
pub(crate) use discover::Found;
pub(crate) use drive::KIND;
pub(crate) use open::{Access, LockedFile, create, open_locked};
