//! A small iSCSI initiator of our own (RFC 7143): one connection a session, many commands outstanding. `load` measures
//! by it, `sessions` makes many, and `increments` counts by it.
//!
//! Leaves out: authentication, error recovery, discovery.

mod lun;
pub mod protocol;
mod session;
mod wire;

pub use lun::Lun;
pub use session::{Initiator, Opened, Waiting, next_isid};
pub use wire::Wire;
