//! Writes: copied and checksummed in one pass, sent to newly allocated blocks, then recorded in the journal.
//!
//! A write that covers part of a block reads the rest first (read-modify-write). Long writes are pipelined: the drive gets
//! the first blocks while the next are copied. Where space is short, admission control delays writes to the rate at which
//! space is freed.

pub(crate) mod admission;
mod pipeline;
pub(crate) mod slow_path;
pub(crate) mod waiters;
mod zeroes;
