//! The RAM cache: 64 KiB extents of the slow tier, with read-ahead and prefetch.
//!
//! A miss is filled with its whole extent; around dense misses read-ahead fetches more (up to 16 MiB), and a
//! history-based prefetcher fetches what followed the same extents before. Evicted extents are candidates for promotion: the
//! cache is their probation.
//!
//! May call the map and vdrives. Leaves out: which extents are worth keeping (`placement`).

pub(crate) mod fill;
pub(crate) mod fills;
pub(crate) mod guarantees;
pub(crate) mod read_cache;
pub(crate) mod readahead;
mod sequence_prefetch;
