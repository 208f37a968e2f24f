//! SCSI units in memory, whose operations complete immediately and whose time stands still.

use block::{AllocationState, BlockDevice, Completion, Geometry, IoBuf, Op, OpKind, StatusExtent};
use reactor::{Clock, Handle, NoKeeper};
use scsi::{AccessState, Luns, Nexus, PortGroups, Ports, Unit};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// Bytes of a volume.
const SIZE: usize = 64 << 10;

/// What a unit that the initiator may not access is filled with. It must not appear in an answer.
pub(super) const HIDDEN: u8 = 0xa5;

struct FrozenClock;

impl Clock for FrozenClock {
    fn now_ns(&self) -> u64 {
        0
    }
}

/// A loop that runs nothing but what `run_ready` is called for. None when the process has no file
/// descriptor left.
pub(super) fn frozen_loop() -> Option<Handle> {
    Handle::simulated(Box::new(FrozenClock), 1).ok()
}

struct MemoryVolume {
    bytes: Mutex<Vec<u8>>,
    serial: String,
}

/// A volume of 64 KiB filled with one byte.
pub(super) fn volume(serial: &str, fill: u8) -> Arc<dyn BlockDevice> {
    Arc::new(MemoryVolume {
        bytes: Mutex::new(vec![fill; SIZE]),
        serial: serial.to_owned(),
    })
}

impl BlockDevice for MemoryVolume {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: SIZE as u64,
            lba_size: 512,
            block_size: 4096,
            read_only: false,
            serial: self.serial.clone(),
        }
    }

    fn submit(&self, mut op: Op) -> Result<(), Op> {
        let mut bytes = self.bytes.lock().expect("nothing panics under the lock");
        let range = op.offset as usize..(op.offset + op.len) as usize;
        assert!(
            range.end <= SIZE,
            "an operation beyond the end of the volume was submitted"
        );
        let mut extents = Vec::new();
        match op.kind {
            OpKind::Read => op.buf.write(0, &bytes[range]),
            OpKind::Write => op.buf.read(0, &mut bytes[range]),
            OpKind::Discard | OpKind::WriteZeroes => bytes[range].fill(0),
            OpKind::Status | OpKind::Changed(_) => extents.push(StatusExtent {
                len: op.len,
                state: AllocationState::Data,
            }),
            OpKind::Flush => {}
        }
        let buf = std::mem::replace(&mut op.buf, IoBuf::empty());
        op.done.complete(Completion {
            tag: op.tag,
            result: Ok(()),
            buf,
            extents,
        });
        Ok(())
    }

    fn on_change(&self, _listener: u64, _waker: Waker) {}

    fn is_gone(&self) -> bool {
        false
    }
}

/// A unit over a volume filled with one byte.
pub(super) fn unit(serial: &str, fill: u8) -> (Arc<dyn BlockDevice>, Arc<Unit>) {
    let device = volume(serial, fill);
    let unit = Unit::new(&device, Arc::new(NoKeeper)).expect("a unit without stored state");
    (device, unit)
}

/// The nexus of an initiator with a unit.
pub(super) fn nexus(
    handle: &Handle,
    (device, unit): &(Arc<dyn BlockDevice>, Arc<Unit>),
    initiator: &str,
) -> Rc<Nexus> {
    let ports = Ports {
        initiator: format!("{initiator},i,0x000000000001"),
        target: "iqn.t".to_owned(),
        target_port: 1,
    };
    let groups = PortGroups::new([(1, AccessState::Optimized)]);
    let (unit, device) = (unit.clone(), device.clone());
    let ports = (ports, Arc::new(groups));
    Rc::new(Nexus::new(handle, unit, device, ports, false))
}

/// A nexus as LUN 0.
pub(super) fn single_lun(nexus: &Rc<Nexus>) -> Luns {
    Luns::new(BTreeMap::from([(0, nexus.clone())]))
}

/// The data of a command that goes out to the unit.
pub(super) fn data_out(bytes: &[u8]) -> IoBuf {
    match bytes.is_empty() {
        true => IoBuf::empty(),
        false => IoBuf::from_bytes(bytes.into()),
    }
}
