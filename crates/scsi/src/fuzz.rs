//! A unit in memory that fuzz targets give commands to. Not there in any other build.

mod reservations;

pub use reservations::reservations;

use crate::luns::Luns;
use crate::nexus::{Nexus, Ports};
use crate::port_groups::{AccessState, PortGroups};
use crate::reservations::{change, decode, encode};
use crate::unit::Unit;
use block::{AllocationState, BlockDevice, Completion, Geometry, IoBuf, Op, OpKind, StatusExtent};
use reactor::{Clock, Handle, NoKeeper};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Bytes of the volume.
const SIZE: usize = 64 << 10;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        0
    }
}

/// A volume whose operations end at once.
struct Memory {
    bytes: Mutex<Vec<u8>>,
    serial: String,
}

/// A volume of 64 KiB full of one byte, whose operations end at once.
pub fn volume(serial: &str, fill: u8) -> Arc<dyn BlockDevice> {
    Arc::new(Memory {
        bytes: Mutex::new(vec![fill; SIZE]),
        serial: serial.to_owned(),
    })
}

impl BlockDevice for Memory {
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
        let mut bytes = self.bytes.lock().expect("nothing panics under it");
        let range = op.offset as usize..(op.offset + op.len) as usize;
        assert!(range.end <= SIZE, "what is past the end is never asked for");
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

fn nexus(handle: &Handle, device: &Arc<dyn BlockDevice>, unit: &Arc<Unit>, name: &str) -> Nexus {
    let ports = Ports {
        initiator: format!("{name},i,0x000000000001"),
        target: "iqn.t".to_owned(),
        target_port: 1,
    };
    let groups = PortGroups::new([(1, AccessState::Optimized)]);
    let (unit, device) = (unit.clone(), device.clone());
    Nexus::new(handle, unit, device, (ports, Arc::new(groups)), false)
}

fn unit(serial: &str, fill: u8) -> (Arc<dyn BlockDevice>, Arc<Unit>) {
    let device = volume(serial, fill);
    let unit = Unit::new(&device, Arc::new(NoKeeper)).expect("nothing is kept");
    (device, unit)
}

/// Reads what may have been kept of reservations, and changes them by PERSISTENT RESERVE OUT: of each piece
/// of the rest a byte tells who does it, one how long its list is, and two are action and type.
///
/// # Panics
/// When a state comes about that cannot be kept and read again.
pub fn kept(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let kept = parts.next().and_then(|kept| std::str::from_utf8(kept).ok());
    let mut state = kept.and_then(decode).unwrap_or_default();
    let mut rest = parts.next().unwrap_or_default();
    while let [who, len, action, kind, after @ ..] = rest {
        let (list, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        let ports = Ports {
            initiator: format!("iqn.{},i,0x00023d000001", who & 3),
            target: "iqn.t".to_owned(),
            target_port: 1,
        };
        let mut cdb = [0x5f, *action, *kind, 0, 0, 0, 0, 0, 0, 0];
        cdb[8] = list.len() as u8;
        let mut changed = state.clone();
        if change(&mut changed, (&ports, &[1, 2]), &cdb, list, true).is_ok() {
            state = changed;
        }
        let read = decode(&encode(&state));
        assert_eq!(read.map(|read| encode(&read)), Some(encode(&state)));
    }
}

/// Carries out commands one after the other: of each piece of `data` two bytes tell the unit and how
/// much data follows, sixteen are its CDB.
///
/// # Panics
/// When a unit that was not granted is read, which is full of 0xa5.
pub fn commands(data: &[u8]) {
    let Ok(handle) = Handle::simulated(Box::new(Still), 1) else {
        return;
    };
    let (device, shown) = unit("granted", 0);
    let granted = Rc::new(nexus(&handle, &device, &shown, "iqn.a"));
    // There, and not for this session.
    let (device, hidden) = unit("hidden", 0xa5);
    let _hidden = nexus(&handle, &device, &hidden, "iqn.b");
    let luns = Luns::new(BTreeMap::from([(0, granted.clone())]));
    let mut rest = data;
    while rest.len() >= 18 {
        let (head, after) = rest.split_at(18);
        let lun = u16::from(head[0] & 1);
        let len = (usize::from(head[1]) * 16).min(after.len());
        let (out, after) = after.split_at(len);
        rest = after;
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&head[2..]);
        let buf = match out.is_empty() {
            true => IoBuf::empty(),
            false => IoBuf::from_bytes(out.into()),
        };
        let generation = granted.generation();
        let mut run = pin!(luns.execute(Some(lun), &cdb, buf, generation));
        let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Some(response)) = polled {
            let bytes = response.data.as_bytes().unwrap_or(&[]);
            let leaked = !out.contains(&0xa5) && bytes.windows(512).any(|all| all == [0xa5; 512]);
            assert!(!leaked || data.contains(&0xa5), "another unit's bytes");
        }
        handle.run_ready(100);
    }
}
