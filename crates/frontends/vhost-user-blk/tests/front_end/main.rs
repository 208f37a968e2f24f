//! Tests of the protocol from outside: a client with rings of its own, and a test volume.

mod device;
mod hostile;
mod monitor;
mod random;
mod recovery;
mod requests;
mod support;
