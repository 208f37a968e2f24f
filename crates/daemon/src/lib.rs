//! The daemon: connects the engine, the protocols and the HTTP API.
//!
//! Responsible for: configuration, exports, reopening pools after a restart, the API's listeners
//! and authentication, orderly shutdown. The only user of tokio.
//! Leaves out: pools and volumes (`engine`), protocols (`frontends`), API types (`api`).

mod access;
mod admission;
mod clock;
mod config;
mod control;
mod delivery;
mod descriptors;
mod drive_search;
mod error;
mod events;
mod fill;
mod frontends;
mod goals;
mod history;
mod host_drives;
mod http;
mod jobs;
mod lines;
mod live;
mod manager;
mod mapping;
mod memory;
mod metrics;
mod names;
mod notify;
mod off;
mod placement;
mod playback;
mod promises;
mod protection;
mod qos;
mod ram;
mod remote_paths;
mod schedule;
mod serve;
mod servers;
mod smart;
mod snapshot_schedule;
mod span;
mod state;
mod sync;
mod volume_io;
mod why;

pub use access::Caller;
pub use config::{Config, LogLevel, TlsFiles, parse_listen_address, parse_metrics_address};
pub use control::Control;
pub use error::ServeError;
pub use frontends::FRONT_ENDS;
pub use host_drives::{drive_kinds, drive_profiles};
pub use manager::{Manager, ManagerConfig, Receiving, Sending, SmartConfig};
pub use memory::check_memory;
pub use metrics::Format;
pub use ram::RamPlan;
pub use remote_paths::RemotePaths;
pub use schedule::ScrubSchedule;
pub use serve::{run, serve};
pub use snapshot_schedule::{Clocks, Due, Past, SnapshotRule, TakenSnapshot, snapshot_name};
pub use span::Span;
pub use state::{StateDir, write_whole};
