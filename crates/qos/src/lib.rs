//! Quality of service: volumes get the guarantees of their policies (docs/qos.md).
//!
//! A **gate** at each shard's entry ([`Gate`]) lets operations pass or holds them in a queue a volume, and releases held ones
//! by start-time fair queueing (Goyal, Guo and Vin 1996), weighted by shares of the shard's time. A newly busy volume
//! starts at the present virtual time, so it does not wait for a round over all others, as it would with round robin. A
//! **cost model** ([`Costs`]) learns what kinds and sizes of operations take of that time, so that small and large ones are
//! charged alike. **Shares** ([`shares`]) come from the policies' minimums, level by level where they do not fit.
//! Where a volume misses its minimum though nothing of it waits at the gate, the others are **paced** (`pace.rs`).
//! Attained service is judged in windows of 100 ms ([`Service`]), with the tenants for whom operations were held ([`HeldFor`]).
//!
//! Beneath the gate an operation carries its level and deadline ([`Due`]).
//!
//! Leaves out: scheduling beneath the gate (drives' turns, waits for space: the engine's). Nothing here reads a clock,
//! waits or starts a task: time is an argument, and the owner of a gate ticks it (the engine's `shard/qos.rs`).

mod costs;
mod due;
mod gate;
mod moments;
mod pace;
mod rivals;
mod service;
mod shares;
mod tenant;
mod window;

pub use costs::{Costs, Kind};
pub use due::Due;
pub use gate::{AloneEnded, Gate, Request};
pub use tenant::Tenant;
