//! Background maintenance: scrub, evacuation, compaction, rebalancing of free space, resync of mirrors, freeing of deleted layers.
//!
//! Each is a task that walks the map or the groups in order, does a bounded piece at a time and lets hosts go first
//! (`upkeep`): scrubs and frees by measured latency, write-back by a share of hosts' load.
//!
//! May call all parts but `shard`'s queues.

mod compact;
pub(crate) mod consistency;
pub(crate) mod evacuate;
pub(crate) mod layer_gc;
pub(crate) mod progress;
pub(crate) mod rebalance;
mod resync;
pub(crate) mod scrub;
pub(crate) mod space_requests;
pub(crate) mod upkeep;
