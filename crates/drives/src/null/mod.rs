//! Drives that keep nothing: reads give zeroes, writes are swallowed. For measuring the rest.

mod drive;

pub(crate) use drive::KIND;
