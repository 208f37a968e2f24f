//! The HTTP interface on its socket.

mod dispatch;
mod metrics;
mod peer;
mod router;
mod server;
mod streams;

pub use metrics::{METRICS_CONNECTIONS_MAX, bind_metrics};
pub use server::{CONNECTIONS_MAX, bind, serve};
