//! The bodies of the fuzz targets: one function of arbitrary bytes for each decoder of what comes
//! from a drive or from a client, listed in [`DRIVE`] and [`PROTOCOL`].
//!
//! Responsible for: the properties that each decoder must have for every input. It does not panic,
//! a record that it accepts encodes to the same bytes or values, and its memory stays below a bound
//! ([`memory`]). A checksum would keep mutated bytes from the code behind it, so targets decode their
//! input twice: as it is, and with the correct checksum ([`input`]).
//! Two drivers run the tables: the libFuzzer binaries in `fuzz/`, which search for new inputs, and
//! `tests/replay.rs`, which runs the stored ones (`fuzz/corpus`, `fuzz/regressions`) in every
//! `cargo test`.
//! Leaves out: mutation, coverage and minimisation, which are libFuzzer's.

pub mod input;
pub mod memory;
mod target;
mod targets;

pub use target::{DRIVE, PROTOCOL, Target};
