//! Ways to a daemon: its Unix socket on this host, or TLS to any, with a token and a certificate that is known.

mod choose;
mod contexts;
pub mod token;
mod wire;

pub use choose::{Environment, Reach, choose};
pub use contexts::{Context, Contexts, LOCAL};
pub use wire::Way;
