//! One single-threaded engine: it owns ranges of volumes and everything beneath them.
//!
//! Responsible for: executing operations, the journal, checkpoints, recovery, and moving data
//! between tiers. Everything runs as tasks of one loop; [`State`] is borrowed only between
//! awaits. Leaves out: pools as a whole, names, and anything about other shards.

mod audit;
mod background;
mod bench;
mod by_export;
mod compact;
pub(crate) mod dispatch;
pub(crate) mod emptying;
mod evacuate;
#[cfg(test)]
pub(crate) mod probe;
mod progress;
mod qos;
mod resync;
mod scrub;
mod serve;
mod spare;
pub(crate) mod state;
mod status;
pub(crate) mod upkeep;

pub use crate::checkpoint::marks::Marks;
pub use crate::map::diff::ChangedChunk;
pub use crate::map::layer_table::Ready;
pub use crate::map::locate::Located;
pub(crate) use crate::tiering::access_stats::By;
pub(crate) use crate::tiering::explain::LayerNames;
pub use crate::tiering::mover::Cooled;
pub(crate) use crate::tiering::settings::Knobs;
pub use crate::tiering::unreadable::Unread;
pub(crate) use crate::tiering::what_if::ShardForecast;
pub(crate) use crate::tiering::write_budget::Budget;
pub(crate) use crate::wal::log::LeftTail;
pub(crate) use crate::wal::nvram_tail::{TAIL_WORDS, Tail};
pub(crate) use crate::wal::tail_head::{TailDrive, TailHead, put_drives};
pub use audit::Audit;
pub(crate) use background::CHANGED_LEAVES;
pub use by_export::ExportTotals;
pub use dispatch::{Asker, InFlight, ShardOp, ShardPort};
pub use evacuate::Evacuated;
pub use progress::Progress;
pub use scrub::{FaultPlace, Scrub, ScrubFault, ScrubPoint};
pub use state::{PoolShared, Shard, ShardConfig};
pub use status::ShardStatus;
