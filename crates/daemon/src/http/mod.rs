//! The HTTP interface on its socket.

mod dispatch;
mod peer;
mod router;
mod server;
mod streams;

pub use server::{CONNECTIONS_MAX, bind, serve};
