//! Forged pools: small real pools in which some fields of pages, records, labels, checkpoints or bitmaps have other
//! values, each under a right checksum, and everything that is done to pools done to them (docs/simulation.md).
//!
//! The requirement: whatever a drive contains, nothing panics, waits forever or uses unbounded memory.
//! The content of such a pool does not matter. Leaves out: damage that checksums detect, which the rest of the
//! simulation and the tests of `inspect` have.

mod attempt;
mod base;
mod disk;
mod forge;
mod label;
mod life;
#[cfg(test)]
mod tests;

pub use attempt::campaign;
