//! The front end from outside: a client with rings of its own on one side, a volume on the other.

mod device;
mod hostile;
mod monitor;
mod random;
mod recovery;
mod requests;
mod support;
