//! Pools that are not in use, read from their drives alone: checked, shown, repaired, copied out.
//!
//! Responsible for: reporting what is intact and what is lost in a pool, writing good copies over
//! bad ones, and getting data out of a pool that cannot be opened.
//! Leaves out: serving pools. It never opens one as the engine does, and only a repair writes.

mod check;
mod checkpoint;
mod chunk;
mod disk;
mod dump;
mod error;
mod fetch;
mod identity;
mod inspection;
mod journal;
mod membership;
mod older;
mod pool;
mod replay;
mod report;
mod restore;
mod run;
mod scan;
mod shard;
mod space;
pub mod text;
mod walk;

pub use disk::{Disk, LabelState};
pub use dump::{Lines, What, dump};
pub use error::{InspectError, Result};
pub use identity::{Renewed, renew, renew_identity};
pub use inspection::{Inspection, Mode, OnProgress, Progress};
pub use pool::Pool;
pub use report::{
    DriveReport, Finding, MendKind, Range, Report, ShardReport, Verdict, VolumeReport,
};
pub use restore::{Restored, Sink, restore_volume};
pub use run::{Options, check, dump_drives, inspect_drives, open_drives, repair, restore};
