//! The published policies that Convect's placement is measured against. No other crate but the lab
//! uses them.
//!
//! Responsible for: which entries of equal size stay in a cache. Leaves out: data, sizes and time.

mod arc;
mod belady;
mod cache;
mod lirs;
mod list;
mod lru;
mod nhit;
mod policies;
mod s3_fifo;
mod sieve;
mod sketch;
mod two_q;
mod w_tinylfu;

pub use arc::Arc;
pub use belady::Belady;
pub use cache::{Cache, Outcome};
pub use lirs::Lirs;
pub use lru::Lru;
pub use nhit::Nhit3;
pub use policies::{POLICIES, Row};
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use two_q::TwoQ;
pub use w_tinylfu::WTinyLfu;
