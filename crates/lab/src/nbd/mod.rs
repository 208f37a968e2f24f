//! A small NBD client of our own: many requests outstanding on one connection, so that a
//! verifier knows of each request when it was sent, answered and flushed. `load` measures by the
//! same words.
//!
//! Leaves out: structured replies and TLS.

mod client;
mod place;
pub mod protocol;

pub use client::{Client, Reply, Request, connect};
pub use place::Place;
