//! Hosts' operations within one shard: reads, writes, discards, allocation status.
//!
//! An operation is tried on the **fast path** first, synchronously as it arrives: data that is in this process's
//! memory is copied straight from or to the host's, and a map lookup, a checksum and a journal record in memory are all
//! that it takes. Operations that must wait for a drive, for a page or for space go to the **slow path**, a task of its own, which
//! does the same for any range.
//!
//! Writes are never in place: data goes to free blocks (log-structured allocation), and one journal record makes it visible.
//! Reads check each block against the CRC32C that the map has, and fall back to another copy.
//!
//! May call the map, the journal, space, the cache and vdrives. Leaves out: the order in which operations are served
//! (`shard`) and moving data between tiers (`tiering`).

pub(crate) mod cpu_prefetch;
pub(crate) mod discard;
mod fast_path;
pub(crate) mod levels;
pub(crate) mod read;
pub(crate) mod write;
