//! Pools as a whole: their drives, labels, shards, vdrives and volumes.
//!
//! Responsible for: turning requests of the control plane into labels on drives and messages to
//! shards. Leaves out: data; that is the shards'.

mod allowances;
mod anchor;
pub(crate) mod build;
mod diff;
mod drives;
mod evidence;
mod explain;
mod exported;
mod exports;
mod fills;
mod group_snapshot;
mod initiators;
mod keeper;
mod labels;
mod layer_gc;
mod limits;
mod look;
mod open;
mod pausing;
mod plan;
mod pool_drives;
mod promote;
mod qos;
mod receive;
mod reservations;
mod scan;
mod schedules;
mod scrub;
mod settings;
mod shards;
mod snapshots;
mod stale_drive;
mod state;
mod status;
mod tails;
mod targets;
mod vdrives;
mod volumes;
mod wear;
mod what_if;

pub(crate) use allowances::Allowances;
pub(crate) use evidence::because_of;
pub(crate) use exported::Exported;
pub(crate) use initiators::AllInitiators;
pub(crate) use keeper::Keeper;
pub use open::Host;
pub use pool_drives::{PoolDrive, describe, report};
pub(crate) use qos::AllTenants;
pub use scan::{Scanned, importable, scan};
pub(crate) use settings::AllSettings;
pub use shards::ShardHandle;
pub(crate) use shards::{code_of, forget_local};
pub use state::Pool;
pub(crate) use state::{Result, error, lock};
