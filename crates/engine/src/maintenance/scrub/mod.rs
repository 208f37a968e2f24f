//! The scrub: reads and verifies every copy of all stored data, and repairs bad ones.
//!
//! Responsible for: a shard's part of it, resumable between any two chunks. Leaves out: when it
//! runs and what is remembered of it; that is the pool's.

mod data;
mod pages;
mod records;
mod report;
mod walk;

pub use report::{FaultPlace, Scrub, ScrubFault, ScrubPoint};
