//! Health of drives (SMART), reported by `smartctl` of smartmontools (docs/metrics.md#smart).
//!
//! Responsible for: querying in bounded time without waking a sleeping disk, and parsing the output
//! as untrusted input.
//! Leaves out: when disks are polled, and alerts (`manager/health.rs`).

mod ask;
mod device;
mod locate;
mod report;

pub use ask::{SmartctlResult, ask};
pub use device::whole_disk;
pub use locate::locate;
pub use report::{failing, read};
