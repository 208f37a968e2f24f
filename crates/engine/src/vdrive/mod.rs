//! Vdrives: drives of one class under one layout.
//!
//! Responsible for: which drive and byte a block lies on, reading with verification, mending a
//! mirror's leg from the good one. Leaves out: what the blocks mean, and who may use them.

mod device;
mod direct;
mod flush;
mod flush_cost;
mod in_flight;
mod latency;
pub(crate) mod mirror;
mod missing;
mod pace;
mod stats;
mod timed;
mod timeout;
mod verify;
mod wear;

pub(crate) use device::all_ended;
pub use device::{Check, DriveShared, PartIo, VdriveIo};
pub use format::{Fragment, Layout};
pub use mirror::dirty_region_log::{StaleMap, region_blocks};
pub use mirror::members::{Leg, LegId, LegState, Legs};
pub use missing::Missing;
pub use stats::Sums;
pub(crate) use timed::Turn;
pub use timeout::Watch;
pub(crate) use timeout::patience;
pub use verify::{Presence, Verified};
pub use wear::{Purpose, Wear};
