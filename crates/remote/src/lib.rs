//! The HTTP client of the command and of the daemon: one exchange a connection, by a Unix socket, TCP or TLS; and the way
//! to a daemon on another host: TLS 1.3 to a certificate that is pinned by its fingerprint or by who signed it, and a
//! token that is shown.
//!
//! Responsible for: addresses, certificates, connections, and requests and answers that are bounded in size and time.
//! Leaves out: who is asked and what for (`cli`, `daemon`). Blocking: no event loop is needed to ask once.

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
