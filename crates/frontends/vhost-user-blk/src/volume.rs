//! The volume with cached properties needed by every request.

use block::BlockDevice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device with its geometry, of which only the size changes.
pub(crate) struct Volume {
    pub(crate) device: Arc<dyn BlockDevice>,
    size: AtomicU64,
    pub(crate) lba_size: u32,
    pub(crate) block_size: u32,
    pub(crate) read_only: bool,
    pub(crate) serial: String,
}

impl Volume {
    pub(crate) fn new(device: Arc<dyn BlockDevice>) -> Self {
        let geometry = device.geometry();
        Self {
            size: AtomicU64::new(geometry.size),
            lba_size: geometry.lba_size,
            block_size: geometry.block_size.max(geometry.lba_size),
            read_only: geometry.read_only,
            serial: geometry.serial,
            device,
        }
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Updates the size from the device; true if it has changed.
    pub(crate) fn refresh(&self) -> bool {
        let size = self.device.geometry().size;
        self.size.swap(size, Ordering::AcqRel) != size
    }
}
