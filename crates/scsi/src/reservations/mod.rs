//! Reservations: persistent ones (SPC-4 5.13) and those of RESERVE(6) and RELEASE(6) (SPC-2 5.5).
//!
//! Responsible for: registrations and the reservation of one unit, who may do what because of them,
//! and the state that must survive a loss of power if a host requests that (APTPL). Leaves out: where
//! it is kept ([`reactor::Keeper`]), and REPLACE LOST RESERVATION, which REPORT CAPABILITIES says.

mod change;
mod conflict;
mod keep;
mod register;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod transport;

pub(crate) use change::{Out, change};
pub(crate) use keep::{decode, encode};
pub(crate) use report::report;
pub(crate) use state::Reservations;
