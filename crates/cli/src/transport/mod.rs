//! Transports to a daemon: its Unix socket on this host, or TLS to any host, with a token and a trusted certificate.

mod choose;
mod connection;
mod contexts;
pub mod token;

pub use choose::{DaemonSelection, Environment, choose};
pub use connection::Transport;
pub use contexts::{Context, Contexts, LOCAL};
