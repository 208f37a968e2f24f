//! Four concurrent guests, each with the load of a kind of server, all of their data on the fast tier.
//!
//! Responsible for: the shapes, one client that sends them when they are due, a thread that only copies to hold the engine
//! against, and the table.
//! Leaves out: the daemon (`memory_pool`) and the ways to disks (`load`).

mod arguments;
mod bare;
mod client;
mod run;
mod windows;

pub use arguments::Guests;
pub use run::run;
