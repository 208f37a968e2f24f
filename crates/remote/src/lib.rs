//! The way to a daemon on another host: TLS 1.3 to a certificate that is known by its fingerprint or by who signed it,
//! and a token that is shown.
//!
//! Responsible for: addresses, certificates, connections, and answers read whole and bounded.
//! Leaves out: which daemon is asked and what for (`cli`, `daemon`).

mod address;
mod answer;
mod error;
mod pin;
mod server;
mod tls;

pub use address::Address;
pub use answer::split;
pub use error::Error;
pub use pin::Pin;
pub use server::{Bounds, Server, Trust, fingerprint, is_token};
pub use tls::Tls;
