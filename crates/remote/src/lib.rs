//! The HTTP client of the command line and the daemon, with one exchange per connection over a Unix
//! socket, TCP or TLS. Daemons on other hosts are reached over TLS 1.3, with a certificate that is
//! pinned or signed by a given CA, and a bearer token.
//!
//! Responsible for: addresses, certificate verification, connections, and exchanges bounded in size
//! and time.
//! Leaves out: which requests are sent (`cli`, `daemon`). Blocking: single exchanges need no event
//! loop.

mod address;
mod connection;
mod error;
mod exchange;
mod pin;
mod server;
mod tls;

pub use address::Address;
pub use connection::{Connection, Patience, Timed};
pub use error::Error;
pub use exchange::{Answer, Broken, exchange};
pub use pin::Pin;
pub use server::{Bounds, Server, Trust, fingerprint, is_token};
pub use tls::Tls;
pub use ureq_proto::http::{Request, request};
