//! The null drive. Every request completes while it is submitted.

use crate::check::{check, is_within};
use crate::spec::{Named, check_name, parse_named};
use crate::{DriveKind, OpenDrive, OpenError};
use block::{Drive, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Lent, Rotation, Shown};
use reactor::Handle;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Logical sector in bytes.
const SECTOR: u32 = 512;
/// Longest transfer in place, in bytes.
const IN_PLACE: usize = 64 << 10;
/// Memory for reads in place.
static ZEROES: [u8; IN_PLACE] = [0; IN_PLACE];

pub(crate) const KIND: DriveKind = DriveKind {
    name: "null",
    about: "Stores nothing: reads return zeroes, writes are discarded.",
    grammar: "null:NAME?size=SIZE",
    keeps_data: false,
    open,
    open_read_only: open,
    canonical: |rest| Ok(parse(rest)?.text("null")),
    found_on: |rest| parse(rest).map(|_| None),
    path: |_| None,
};

fn parse(rest: &str) -> Result<Named, OpenError> {
    let named = parse_named("null", rest)?;
    check_name("null", &named.name)?;
    if named.size.is_none() {
        return Err(OpenError::syntax(format!(
            "'null:{rest}' has no size: use for example null:{rest}?size=1T"
        )));
    }
    Ok(named)
}

fn open(rest: &str) -> Result<Arc<dyn OpenDrive>, OpenError> {
    let named = parse(rest)?;
    Ok(Arc::new(Null {
        size: named.size.unwrap_or_default(),
        spec: named.text("null"),
    }))
}

struct Null {
    spec: String,
    size: u64,
}

impl Drive for Null {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            spec: self.spec.clone(),
            size: self.size,
            logical_sector: SECTOR,
            physical_sector: 4096,
            rotation: Rotation::Solid,
            write_cache: false,
            persistent: false,
        }
    }
}

impl OpenDrive for Null {
    fn queue(&self, _handle: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(NullQueue {
            size: self.size,
            nowhere: RefCell::new(Box::new([0; IN_PLACE])),
        }))
    }
}

struct NullQueue {
    size: u64,
    /// Where what is written in place goes.
    nowhere: RefCell<Box<[u8; IN_PLACE]>>,
}

impl DriveQueue for NullQueue {
    fn submit(&self, mut io: DriveIo) {
        let result = check(&io, self.size, SECTOR);
        if result.is_ok()
            && io.kind == DriveIoKind::Read
            && let Some(buf) = &mut io.buf
        {
            buf.fill(0);
        }
        io.done.send((io.buf, result));
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn read_in_place(&self, offset: u64, len: usize, see: &mut dyn FnMut(Shown<'_>)) -> bool {
        let zeroes = ZEROES
            .get(..len)
            .filter(|_| is_within(offset, len, self.size));
        zeroes.map(|zeroes| see(zeroes.into())).is_some()
    }

    fn write_in_place(&self, offset: u64, len: usize, fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        let mut nowhere = self.nowhere.borrow_mut();
        let taken = (nowhere.get_mut(..len)).filter(|_| is_within(offset, len, self.size));
        taken.map(|taken| fill(taken.into())).is_some()
    }
}
