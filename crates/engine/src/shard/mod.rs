//! One single-threaded engine: it owns ranges of volumes and everything beneath them.
//!
//! Responsible for: executing operations, the journal, checkpoints, recovery, and moving data
//! between tiers. Everything runs as tasks of one loop; [`State`] is borrowed only between
//! awaits. Leaves out: pools as a whole, names, and anything about other shards.

mod ahead;
mod alone;
mod apply;
mod at_once;
mod audit;
mod background;
mod balance;
mod bench;
mod budget;
mod bulk;
mod checkpoint;
mod claim;
mod compact;
mod demote;
mod diff;
mod digest;
mod dispatch;
mod emptying;
mod evacuate;
mod explain;
mod fetch;
mod give_up;
mod heat;
mod journal;
mod kept;
mod knobs;
mod layers;
mod leaf;
mod ledger;
mod locate;
mod lost;
mod map;
mod merge;
mod pacing;
mod pages;
mod path;
mod pins;
mod prefetch;
#[cfg(test)]
mod probe;
mod progress;
mod promote;
mod quota;
mod ram;
mod read;
mod reclaim;
mod recover;
mod replay;
mod rescue;
mod resync;
mod scrub;
mod serve;
mod sinking;
mod spare;
mod state;
mod status;
mod stuck;
mod throttle;
mod trim;
mod victims;
mod what_if;
mod write;
mod yielding;

pub use audit::Audit;
pub(crate) use background::CHANGED_LEAVES;
pub(crate) use budget::Budget;
pub use diff::ChangedChunk;
pub use dispatch::{InFlight, ShardOp, ShardPort};
pub use evacuate::Evacuated;
pub(crate) use explain::LayerNames;
pub(crate) use heat::By;
pub(crate) use knobs::Knobs;
pub use layers::Ready;
pub use locate::Located;
pub use progress::Progress;
pub(crate) use read::Looked;
pub use reclaim::Cooled;
pub use scrub::{FaultPlace, Scrub, ScrubFault, ScrubPoint};
pub use state::{PoolShared, Shard, ShardConfig};
pub use status::ShardStatus;
pub use stuck::Unread;
pub(crate) use what_if::ShardForecast;
