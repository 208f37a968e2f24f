//! The NBD server from the clients' perspective.

mod clients;
mod contexts;
mod crowds;
mod gone;
mod handshake;
mod memory;
mod random;
mod support;
mod tls;
mod transmission;
