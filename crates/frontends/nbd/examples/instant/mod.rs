//! A volume that answers at once.

mod device;

pub use device::*;
