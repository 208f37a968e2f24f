//! The NBD server, as its clients see it.

mod clients;
mod contexts;
mod handshake;
mod support;
mod transmission;
