//! Ways to a daemon: its Unix socket on this host, or TLS to any, with a token and a certificate that is known.

mod address;
mod choose;
mod contexts;
mod pin;
mod server;
mod tls;
mod token;
mod wire;

pub use address::Address;
pub use choose::{Environment, Reach, choose};
pub use contexts::{Context, Contexts, LOCAL};
pub use pin::Pin;
pub use server::{Server, Trust, fingerprint};
pub use wire::{Way, Wire};
