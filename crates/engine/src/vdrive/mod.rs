//! Vdrives: drives of one class under one layout.
//!
//! Responsible for: which drive and byte a block lies on, reading with verification, mending a
//! mirror's leg from the good one. Leaves out: what the blocks mean, and who may use them.

mod copy;
mod deadline;
mod flights;
mod flush_cost;
mod flushing;
mod in_place;
mod io;
mod legs;
mod missing;
mod pace;
mod read_cost;
mod stale;
mod tally;
mod timed;
mod verify;
mod wear;

pub use deadline::Watch;
pub(crate) use deadline::patience;
pub use format::{Fragment, Layout};
pub(crate) use io::all_ended;
pub use io::{Check, DriveShared, PartIo, VdriveIo};
pub use legs::{Leg, LegId, LegState, Legs};
pub use missing::Missing;
pub use stale::{StaleMap, region_blocks};
pub use tally::Sums;
pub(crate) use timed::Turn;
pub use verify::{Presence, Verified};
pub use wear::{Purpose, Wear};
