//! An open volume: adds export and initiator to each operation.
//!
//! Leaves out: what shards decide and count by them (`shard/dispatch.rs`).

use super::initiator::Initiator;
use super::volume::VolumeDevice;
use crate::shard::Asker;
use block::{BlockDevice, Geometry, Op};
use std::sync::Arc;
use std::task::Waker;

/// The number by which shards know an export. It is not reused while this value exists.
#[derive(Debug)]
pub struct ExportNumber(pub u16);

/// A volume, or a snapshot of one, as an export, an initiator, or both have it open.
pub struct OpenedDevice {
    device: Arc<VolumeDevice>,
    initiator: Option<Initiator>,
    export: Option<Arc<ExportNumber>>,
}

impl OpenedDevice {
    /// `device`, opened by a known export or initiator.
    pub fn new(
        device: Arc<VolumeDevice>,
        initiator: Option<Initiator>,
        export: Option<Arc<ExportNumber>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            device,
            initiator,
            export,
        })
    }
}

impl BlockDevice for OpenedDevice {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        let by = Asker {
            bypassed: self.initiator.as_ref().is_some_and(Initiator::is_bypassed),
            export: self.export.as_ref().map_or(0, |export| export.0),
        };
        let (kind, offset, len) = (op.kind, op.offset, op.len);
        self.device.submit_as(op, by)?;
        if let (true, Some(initiator)) = (by.bypassed, &self.initiator) {
            initiator.count(kind, offset, len);
        }
        Ok(())
    }

    fn on_change(&self, listener: u64, waker: Waker) {
        self.device.on_change(listener, waker);
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }

    fn bases(&self) -> Vec<(String, u32)> {
        self.device.bases()
    }
}
