//! Metrics in Prometheus' formats: each metric is a row of a table, collected at each scrape.

mod accept;
mod collect;
mod encoder;
mod families;

pub use collect::{PoolFigures, Times, daemon, exports, jobs, pool, request_memory, took};
pub use encoder::{Format, Page};
