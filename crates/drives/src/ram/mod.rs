//! Drives of memory, shared by name within the process.

mod drive;
mod memory;

pub(crate) use drive::KIND;
pub use drive::forget_ram;
