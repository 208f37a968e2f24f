//! The other side of the protocol: what a virtual machine's monitor and its guest do together.
//!
//! Responsible for: connecting, sharing memory, driving split rings by hand, also wrongly on
//! purpose, and a load of random reads and writes. For tests and benchmarks.
//! Leaves out: packed rings, and everything of a real monitor that a disk does not notice.

mod command;
mod connection;
mod load;
mod memory;
mod queue;

pub use command::{Command, Done};
pub use connection::{Client, Options};
pub use load::{Load, LoadResult};
pub use queue::ClientQueue;
