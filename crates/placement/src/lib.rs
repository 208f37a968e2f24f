//! Decisions about data placement: pure functions of past events, without I/O or clock.
//!
//! Responsible for: how hot an extent is, what a miss reads, what RAM and the fast tier keep, and what is
//! promoted ([`Policy`], docs/placement.md), and forecasts for other sizes of the fast tier
//! ([`WhatIf`], from [`Curve`] and [`Miniature`]). Leaves out: carrying decisions out.

mod age;
mod ahead;
mod cells;
mod curve;
mod directory;
mod foresight;
mod hash;
mod hazard;
mod miniature;
mod moves;
mod neighbours;
mod pieces;
mod place;
mod policy;
mod present;
mod regions;
mod trail;
mod what_if;

pub use curve::Curve;
pub use miniature::Miniature;
pub use moves::{Admission, Arrival, Leaving, Victim};
pub use place::{Blocks, Extent, split};
pub use policy::{Config, Found, Heat, Policy};
pub use regions::{Fetch, Fresh, Regions};
pub use what_if::{Told, WhatIf};
