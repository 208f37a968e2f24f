//! Forged pools: small real pools in which some fields of pages, records, labels, checkpoints or bitmaps have other
//! values, each under a right checksum, and everything that is done to pools done to them (docs/simulation.md).
//!
//! Nothing but the end counts: whatever a drive says, nothing panics, waits for ever or takes memory without a bound.
//! What such a pool then holds is nobody's business. Leaves out: damage that a checksum tells, which the rest of the
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
