//! NBD server: exports a volume to NBD clients over a Unix socket or TCP.
//!
//! Responsible for: the fixed newstyle handshake, TLS with certificates, transmission with simple
//! and structured replies, listeners and sessions. A request is copied from the socket once and
//! then validated; a malicious peer affects its own session only.
//! Leaves out: TLS with pre-shared keys, which rustls does not support; extended headers; and
//! notifying connected clients of a resize, for which the protocol has no message: requests are
//! checked against the new size, and new connections see it.
//!
//! The protocol is <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, called
//! "the specification" below.

mod address;
mod batch;
mod channel;
mod contexts;
mod errors;
mod export;
mod flight;
mod front_end;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod input;
mod options;
mod parameters;
mod pieces;
mod protocol;
mod replies;
mod secure;
mod session;
mod shared;
mod tls;
mod transmission;

pub use front_end::FRONT_END;
