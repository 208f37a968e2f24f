//! The ram drive. Every request completes while it is submitted.
//!
//! Lifetime: `ram:NAME?size=SIZE` allocates the memory if the process has none of that name. It
//! stays, closed or open, until the process ends or [`forget_ram`] is called, so that a pool on
//! it can be exported and imported again. It is lost with the process.

use super::memory::Memory;
use crate::check::{check, is_within};
use crate::spec::{Named, check_name, exact_size, parse_named};
use crate::{DriveKind, OpenDrive, OpenError, OpenErrorKind};
use block::{Drive, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Lent, Rotation, Shown};
use reactor::Handle;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use units::Coming;

/// Logical sector in bytes.
const SECTOR: u32 = 512;
/// Most memories that a process keeps.
const NAMES_MAX: usize = 1024;

pub(crate) const KIND: DriveKind = DriveKind {
    name: "ram",
    about: "Memory of this process, kept by name until it ends; for tests and demonstrations.",
    grammar: "ram:NAME?size=SIZE",
    keeps_data: true,
    open,
    open_read_only: open,
    canonical: |rest| Ok(parse(rest)?.text("ram")),
    found_on,
    path: |_| None,
};

struct Kept {
    memory: Arc<Memory>,
    /// Dead when it is not open.
    user: Weak<Opened>,
}

/// Alive while the drive or one of its queues is.
struct Opened {
    memory: Arc<Memory>,
}

static NAMES: Mutex<BTreeMap<String, Kept>> = Mutex::new(BTreeMap::new());

fn names() -> MutexGuard<'static, BTreeMap<String, Kept>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees the memory called `name`, when its last user is gone at the latest. False when there is
/// none of that name.
pub fn forget_ram(name: &str) -> bool {
    names().remove(name).is_some()
}

fn parse(rest: &str) -> Result<Named, OpenError> {
    let named = parse_named("ram", rest)?;
    check_name("ram", &named.name)?;
    Ok(named)
}

fn found_on(rest: &str) -> Result<Option<String>, OpenError> {
    let named = parse(rest)?;
    let memory = names().get(&named.name).map(|kept| kept.memory.clone());
    let Some(memory) = memory else {
        return Ok(None);
    };
    let read = |offset: u64, buf: &mut [u8]| {
        memory.read(offset, buf);
        Ok(())
    };
    crate::signature(read, memory.size())
        .map_err(|error| OpenError::system(&format!("cannot examine ram:{rest}"), &error))
}

fn open(rest: &str) -> Result<Arc<dyn OpenDrive>, OpenError> {
    let named = parse(rest)?;
    let mut names = names();
    if let Some(kept) = names.get_mut(&named.name) {
        check_kept(kept, &named)?;
    } else {
        let kept = make(&named, names.len())?;
        names.insert(named.name.clone(), kept);
    }
    let kept = names.get_mut(&named.name).expect("just looked at");
    let opened = Arc::new(Opened {
        memory: kept.memory.clone(),
    });
    kept.user = Arc::downgrade(&opened);
    let size = Some(kept.memory.size());
    Ok(Arc::new(Ram {
        spec: Named {
            name: named.name,
            size,
        }
        .text("ram"),
        opened,
    }))
}

fn check_kept(kept: &Kept, named: &Named) -> Result<(), OpenError> {
    let name = &named.name;
    if kept.user.strong_count() > 0 {
        return Err(OpenError::new(
            OpenErrorKind::Busy,
            format!("ram:{name} is in use by this process: close its pool or choose another name"),
        ));
    }
    let size = kept.memory.size();
    if named.size.is_some_and(|wanted| wanted != size) {
        return Err(OpenError::new(
            OpenErrorKind::Unsupported,
            format!(
                "ram:{name} exists with another size: use ram:{name}?size={} or choose another name",
                exact_size(size)
            ),
        ));
    }
    Ok(())
}

fn make(named: &Named, count: usize) -> Result<Kept, OpenError> {
    let name = &named.name;
    let Some(size) = named.size else {
        return Err(OpenError::new(
            OpenErrorKind::NotFound,
            format!(
                "ram:{name} does not exist in this process: add a size to create it, as in ram:{name}?size=1G"
            ),
        ));
    };
    if count >= NAMES_MAX {
        return Err(OpenError::new(
            OpenErrorKind::Unsupported,
            format!(
                "this process already has {NAMES_MAX} ram drives, the maximum: restart it to drop them"
            ),
        ));
    }
    let memory = Memory::new(size).map_err(|error| {
        OpenError::new(
            OpenErrorKind::Unsupported,
            format!(
                "{} of memory for ram:{name} cannot be mapped ({error}): choose a smaller size",
                units::format_bytes(size)
            ),
        )
    })?;
    Ok(Kept {
        memory: Arc::new(memory),
        user: Weak::new(),
    })
}

struct Ram {
    spec: String,
    opened: Arc<Opened>,
}

impl Drive for Ram {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            spec: self.spec.clone(),
            size: self.opened.memory.size(),
            logical_sector: SECTOR,
            physical_sector: 4096,
            rotation: Rotation::Solid,
            write_cache: false,
            persistent: false,
        }
    }
}

impl OpenDrive for Ram {
    fn queue(&self, _handle: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(RamQueue {
            opened: self.opened.clone(),
        }))
    }
}

struct RamQueue {
    opened: Arc<Opened>,
}

impl DriveQueue for RamQueue {
    fn submit(&self, mut io: DriveIo) {
        let memory = &self.opened.memory;
        let result = check(&io, memory.size(), SECTOR);
        if result.is_ok() {
            match (io.kind, &mut io.buf) {
                (DriveIoKind::Read, Some(buf)) => memory.read(io.offset, buf),
                (DriveIoKind::Write, Some(buf)) => memory.write(io.offset, buf),
                (DriveIoKind::Discard, _) => memory.discard(io.offset, io.len),
                _ => {}
            }
        }
        io.done.send((io.buf, result));
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn coming(&self, offset: u64, len: usize) -> Coming {
        self.opened.memory.coming(offset, len)
    }

    fn read_in_place(&self, offset: u64, len: usize, see: &mut dyn FnMut(Shown<'_>)) -> bool {
        let memory = &self.opened.memory;
        let is_there = is_within(offset, len, memory.size());
        if is_there {
            see(memory.shown(offset, len));
        }
        is_there
    }

    fn write_in_place(&self, offset: u64, len: usize, fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        let memory = &self.opened.memory;
        let is_there = is_within(offset, len, memory.size());
        if is_there {
            fill(memory.lent(offset, len));
        }
        is_there
    }
}
