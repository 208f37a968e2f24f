//! Drives that store nothing: reads return zeroes, writes are discarded. For measuring everything else.

mod drive;

pub(crate) use drive::KIND;
