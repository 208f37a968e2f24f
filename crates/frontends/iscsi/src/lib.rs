//! A volume as an iSCSI disk (RFC 7143): for Linux, Windows and VMware on other machines.
//!
//! Responsible for: portals, targets, logging in with CHAP, discovery, and carrying SCSI commands and
//! their data over one connection or several at error recovery level 0. What the commands mean is the crate
//! `scsi`'s. Every header is copied out of the socket once and then checked; a hostile peer ends its own session
//! and no other. Leaves out: recovery of connections, and IPsec.

mod access;
mod account;
mod answers;
mod bytes;
mod channel;
mod chap;
mod command;
mod connection;
mod digest;
mod direct;
mod discovery;
mod early;
mod export;
mod fence;
mod front_end;
mod functions;
#[doc(hidden)]
pub mod fuzz;
mod guesses;
mod input;
mod login;
mod members;
mod memory;
mod negotiate;
mod notices;
mod open;
mod output;
mod parameters;
mod pdu;
mod portal;
mod registry;
mod serving;
mod session;
mod target;
mod tasks;
mod text;
mod twins;
mod window;

pub use front_end::FRONT_END;
