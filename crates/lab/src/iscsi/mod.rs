//! A small iSCSI initiator of our own (RFC 7143): one connection a session, many commands outstanding. `load` measures
//! by it, and `sessions` makes many.
//!
//! Leaves out: authentication, digests, error recovery, discovery.

mod lun;
mod names;
pub mod protocol;
mod session;

pub use lun::Lun;
pub use session::{Opened, Waiting};
