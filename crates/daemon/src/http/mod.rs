//! The HTTP API and the listeners that serve it.

mod accept;
mod bodies;
mod conditions;
mod connection;
mod dispatch;
mod events;
mod gate;
mod hub;
mod keys;
mod metrics;
mod network;
mod once;
mod page;
mod peer;
mod router;
mod scrapes;
mod server;
mod shares;
mod streams;
mod subject;
mod tags;
mod tls;
mod workers;

pub use metrics::bind_metrics;
pub use network::bind_network;
pub use scrapes::SCRAPE_WORKERS;
pub use server::{bind, serve};
pub use workers::WORKERS_MAX;
