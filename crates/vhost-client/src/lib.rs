//! The other side of vhost-user-blk: the roles of a VMM and its guest.
//!
//! Responsible for: connecting, sharing memory, and driving split rings by hand, also wrongly on
//! purpose. For tests and the laboratory.
//! Leaves out: packed rings, loads (the laboratory has them), and everything of a real monitor
//! that a disk does not notice.

mod command;
mod connection;
mod memory;
pub mod monitor;
mod queue;
mod raw;

pub use command::{Command, Done};
pub use connection::{Client, Options};
pub use monitor::{Monitor, RawGuest};
pub use queue::ClientQueue;
pub use raw::{RawConnection, memory_file};
