//! A volume as a SCSI disk: common to all SCSI transports.
//!
//! Responsible for: commands and their answers (SPC-4, SBC-3 and parts of SBC-4), sense data, unit
//! attentions, reservations, and locks that make COMPARE AND WRITE one step. A CDB and its data are
//! checked before anything is done; values out of bounds return sense data, never a panic.
//! Leaves out: transports, who may log in, and which units exist: a front end decides that.

mod absent;
mod attention;
mod blocks;
mod compare;
mod copy;
mod direct;
mod execute;
mod fields;
#[doc(hidden)]
pub mod fuzz;
mod identity;
mod inquiry;
mod io;
mod log;
mod luns;
mod mode;
mod nexus;
mod once;
mod port_groups;
mod provision;
mod ranges;
mod report;
mod reservations;
mod rights;
mod sanitize;
mod sense;
mod small;
mod stop;
mod table;
mod transfer;
mod unit;

pub use attention::Attention;
pub use direct::Direct;
pub use execute::{Response, memory_of, outlives_abort};
pub use identity::Identity;
pub use luns::{LUN_MAX, Luns, parse_lun};
pub use nexus::{Nexus, Ports};
pub use once::Once;
pub use port_groups::{AccessState, PortGroups};
pub use sense::{Sense, Status};
pub use stop::Stop;
pub use unit::Unit;
