//! One shard: a single-threaded engine that owns regions of volumes and everything beneath them.
//!
//! It is put together from the parts beside it (`io`, `map`, `wal`, `checkpoint`, `recovery`, `space`, `cache`, `tiering`,
//! `maintenance`). Here are its state, the queue at which any thread leaves operations, the order in which they are
//! served, the gate for quality of service, and the background tasks that it runs. Shards share nothing that changes but
//! the table of groups and a few counters (shared nothing, thread per core).
//!
//! Everything runs as tasks of one loop; [`State`] is borrowed only between awaits, never across one. Leaves out: pools
//! as a whole, names, and anything about other shards.

mod alone;
mod background;
mod bench;
pub(crate) mod dispatch;
pub(crate) mod lifecycle;
#[cfg(test)]
pub(crate) mod probe;
mod qos;
mod serve;
pub(crate) mod state;
mod stats;
mod status;

pub use crate::checkpoint::marks::Marks;
pub use crate::maintenance::consistency::Audit;
pub use crate::maintenance::evacuate::Evacuated;
pub use crate::maintenance::progress::Progress;
pub use crate::maintenance::scrub::{FaultPlace, Scrub, ScrubFault, ScrubPoint};
pub use crate::map::diff::ChangedChunk;
pub use crate::map::layer_table::Ready;
pub use crate::map::locate::Located;
pub(crate) use crate::tiering::access_stats::By;
pub(crate) use crate::tiering::explain::LayerNames;
pub use crate::tiering::mover::Cooled;
pub(crate) use crate::tiering::settings::{PolicyHints, VolumeSettings};
pub use crate::tiering::unreadable::UnreadableBlocks;
pub(crate) use crate::tiering::what_if::ShardForecast;
pub(crate) use crate::tiering::write_budget::Budget;
pub(crate) use crate::wal::journal::LeftTail;
pub(crate) use crate::wal::nvram_tail::{TAIL_WORDS, Tail};
pub(crate) use crate::wal::tail_head::{TailDrive, TailHead, put_drives};
pub(crate) use background::CHANGED_PAGES;
pub use dispatch::{Asker, InFlight, LONG_BYTES, ShardOp, ShardPort};
pub use state::{PoolShared, Shard, ShardConfig};
pub use stats::ExportTotals;
pub use status::ShardStatus;
