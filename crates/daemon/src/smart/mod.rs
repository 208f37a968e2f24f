//! What drives tell of their own health (SMART), by smartmontools' `smartctl` (docs/metrics.md#smart).
//!
//! Responsible for: asking without waking a disk that sleeps, in bounded time, and reading what comes as hostile input.
//! Leaves out: when it is asked and what follows from it (`manager/health.rs`).

mod ask;
mod device;
mod locate;
mod report;

pub use ask::{Asked, ask};
pub use device::whole_disk;
pub use locate::locate;
pub use report::{failing, read};
