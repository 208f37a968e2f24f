//! Files and block devices, through io_uring and past the page cache.

mod busy;
mod discover;
mod drive;
mod open;
mod queue;

pub(crate) use drive::KIND;
