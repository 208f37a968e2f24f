//! The simulation: the engine that ships, on one thread, over drives that lie and lose power.
//!
//! `cargo run --release -p sim -F program -- --seed N` runs one seed and prints the digest of all that
//! happened. docs/simulation.md describes what is simulated and what is not.

mod aims;
mod changes;
mod check;
mod client;
mod command;
mod compare;
mod content;
mod diff;
mod drive;
mod faults;
mod forged;
#[cfg(any(debug_assertions, feature = "mutations"))]
mod gate;
mod groups;
mod image;
mod instant;
mod kills;
mod knobs;
mod lent;
mod limits;
mod lives;
mod medium;
mod memory;
mod openings;
mod oracle;
mod plan;
mod policies;
mod promote;
mod races;
mod random;
mod regressions;
mod request;
mod reserve;
mod run;
mod schedules;
mod sectors;
mod shadow;
mod shrink;
mod snapshots;
mod tamper;
mod tempo;
mod tools;
mod transfer;
mod trial;
mod world;
mod young;

pub use command::main;

/// A state is opened, examined and dropped in a fraction of a millisecond, a sixth of which the system's allocator took.
#[global_allocator]
static ALLOCATOR: memory::Lifo = memory::Lifo;
