//! iSCSI target (RFC 7143): exports volumes to remote Linux, Windows and VMware hosts.
//!
//! Responsible for: portals, targets, login with CHAP, discovery, and transport of SCSI commands
//! and data over one or several connections at error recovery level 0. The commands are implemented
//! by the crate `scsi`. Every header is copied from the socket once and then validated; a malicious
//! peer affects its own session only. Leaves out: connection recovery, and IPsec.

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
