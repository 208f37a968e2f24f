//! One single-threaded engine: it owns ranges of volumes and everything beneath them.
//!
//! Responsible for: executing operations, the journal, checkpoints, recovery, and moving data
//! between tiers. Everything runs as tasks of one loop; [`State`] is borrowed only between
//! awaits. Leaves out: pools as a whole, names, and anything about other shards.

mod audit;
mod background;
mod bench;
mod budget;
mod by_export;
mod claim;
mod compact;
pub(crate) mod demote;
pub(crate) mod dispatch;
pub(crate) mod emptying;
mod evacuate;
mod explain;
pub(crate) mod heat;
pub(crate) mod knobs;
pub(crate) mod ledger;
mod pins;
#[cfg(test)]
pub(crate) mod probe;
mod progress;
mod promote;
mod qos;
mod reclaim;
mod resync;
mod scrub;
mod serve;
mod sinking;
mod spare;
pub(crate) mod state;
mod status;
pub(crate) mod stuck;
mod upkeep;
mod victims;
mod what_if;

pub use crate::checkpoint::marks::Marks;
pub use crate::map::diff::ChangedChunk;
pub use crate::map::layer_table::Ready;
pub use crate::map::locate::Located;
pub(crate) use crate::wal::log::LeftTail;
pub(crate) use crate::wal::nvram_tail::{TAIL_WORDS, Tail};
pub(crate) use crate::wal::tail_head::{TailDrive, TailHead, put_drives};
pub use audit::Audit;
pub(crate) use background::CHANGED_LEAVES;
pub(crate) use budget::Budget;
pub use by_export::ExportTotals;
pub use dispatch::{Asker, InFlight, ShardOp, ShardPort};
pub use evacuate::Evacuated;
pub(crate) use explain::LayerNames;
pub(crate) use heat::By;
pub(crate) use knobs::Knobs;
pub use progress::Progress;
pub use reclaim::Cooled;
pub use scrub::{FaultPlace, Scrub, ScrubFault, ScrubPoint};
pub use state::{PoolShared, Shard, ShardConfig};
pub use status::ShardStatus;
pub use stuck::Unread;
pub(crate) use what_if::ShardForecast;
