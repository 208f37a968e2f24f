//! Schedules of quality of service: gates over modelled shards, compared with an oracle of each volume's due service.
//!
//! A schedule is drawn from a seed: shards of one to three, what they serve at a time and what operations take there,
//! volumes with their policies, sizes and habits (some keep many operations in flight, some send one after the other at
//! a slow pace, some pause), and changes of policies while all of it runs. Time is virtual. Gates are asked exactly as
//! the engine's shards ask theirs (the engine's `shard/qos.rs`).
//!
//! One seed of two hundred is of another kind: a loop that does front ends as well (`shared.rs`).
//!
//! Leaves out: the engine beneath. Execution of released operations is covered by the engine's own tests.

mod campaign;
mod draw;
mod oracle;
mod shared;
mod world;

pub use campaign::{Tally, campaign, run};
