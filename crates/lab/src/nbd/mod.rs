//! A small NBD client of our own: many requests outstanding on one connection, so that a
//! verifier knows of each request when it was sent, answered and flushed.
//!
//! Leaves out: structured replies, TLS, and being fast; fio measures, this one checks.

mod client;
mod protocol;

pub use client::{Client, Reply, Request};
