//! Vdrives: drives of one class under one layout (concat, stripe or mirror).
//!
//! A vdrive maps its blocks to drives and bytes, reads with verification (the caller gives the check), and repairs a member
//! of a mirror from an intact one. Every request has a deadline, and its latency is measured: an exponentially weighted
//! average estimates the cost of a read, by which reads of clean copies are balanced. Flushes of a drive are joined, and one
//! counts only if no other that overlapped it failed. Where a drive's data is in this process's memory, `direct` reads and
//! writes it without a buffer or a task in between.
//!
//! Names no other part of the engine. Leaves out: what the blocks mean, and who may use them.

mod device;
mod devices;
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
pub(crate) use devices::Devices;
pub use format::{Fragment, Layout};
pub use mirror::dirty_region_log::{StaleMap, region_blocks};
pub use mirror::members::{Member, MemberId, MemberState, Members};
pub use missing::Missing;
pub use stats::Sums;
pub(crate) use timed::Turn;
pub use timeout::Watch;
pub(crate) use timeout::patience;
pub use verify::{Presence, Verified};
pub use wear::{Purpose, Wear};
