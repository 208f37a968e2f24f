//! Synthetic traces: the same seed makes the same requests.
//!
//! Responsible for: patterns which policies should be good at, or stumble over, each with a share
//! and a size that are known. All are on one device, at 1,000 requests per second on average.

mod make;
mod patterns;
mod random;
mod vdi;

pub use make::{BLOCKS_MAX, BLOCKS_MIN, REQUESTS_MAX, Synthetic, SyntheticError, all, make};
