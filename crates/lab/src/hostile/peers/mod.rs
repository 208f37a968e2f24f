//! Clients that attackers use: with an address of their own, and no better than they have to be.

pub mod http;
pub mod iscsi;
pub mod nbd;
mod net;
pub mod silent;

pub use net::{connect, connect_unix};
