//! Reservations: persistent ones (SPC-4 5.13) and those of RESERVE(6) and RELEASE(6) (SPC-2 5.5).
//!
//! Responsible for: registrations and the reservation of one unit, who may do what because of them,
//! and keeping them through a loss of power where a host asks for that (APTPL). Leaves out:
//! SPEC_I_PT, ALL_TG_PT and REGISTER AND MOVE, which REPORT CAPABILITIES says.

mod change;
mod conflict;
mod keep;
mod report;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use change::{Out, change};
pub use keep::{Keeper, NoKeeper};
pub(crate) use report::report;
pub(crate) use state::Reservations;
