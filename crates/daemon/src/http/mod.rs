//! The HTTP interface on its socket.

mod conditions;
mod dispatch;
mod events;
mod gate;
mod keys;
mod metrics;
mod network;
mod once;
mod page;
mod peer;
mod router;
mod server;
mod shares;
mod streams;
mod subject;
mod tls;

pub use metrics::{METRICS_CONNECTIONS_MAX, bind_metrics};
pub use network::{NETWORK_CONNECTIONS_MAX, bind_network};
pub use server::{CONNECTIONS_MAX, bind, serve};
