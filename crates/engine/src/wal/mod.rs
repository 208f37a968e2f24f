//! The journal: a write-ahead log of map changes, one ring a shard in the metadata region.
//!
//! A record is **appended** in memory, **persisted** in the ring or in memory that outlives the process (a tail, as an NVRAM
//! log has), and **committed** once the drives were flushed. Concurrent commits are joined (group commit): one runs, the
//! others wait for the next. Pages have a sequence number, an epoch and a checksum, so the end of the log is found without
//! a pointer to it; a mark that follows a commit says how far it was durable.
//!
//! May call space, which reclaims deferred frees when a commit ends. Leaves out: what records mean (`map`), and replaying
//! them again (`recovery`).

mod durable_mark;
pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod nvram_tail;
pub(crate) mod reservations;
pub(crate) mod single_flight;
pub(crate) mod tail_head;
pub(crate) mod writer;
