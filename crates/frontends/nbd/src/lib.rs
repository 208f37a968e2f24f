//! A volume as a network block device: any NBD client can use it, over a Unix socket or TCP.
//!
//! Responsible for: the fixed newstyle handshake, TLS with certificates, transmission with simple and
//! structured replies, and the lives of listener and sessions. A request is copied out of the socket once
//! and then checked; a hostile peer ends its own session and no other.
//! Leaves out: TLS with pre-shared keys, which the library does not have, extended headers, and
//! telling a connected client that the volume was resized, for which the protocol has no message:
//! requests are checked against the new size at once, a new connection is told of it.
//!
//! The protocol is that of <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>,
//! "the specification" in what follows.

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
