//! Descriptor chains (virtio 1.2, section 2.7.5), including indirect tables.
//!
//! A walk can start at any head, since requests that a previous daemon left open are no longer in
//! the available ring.

use crate::guest::{Guest, read_volatile};
use crate::ring::Ring;
use std::ptr::NonNull;
use virtio_queue::desc::split::Descriptor;
use vm_memory::GuestAddress;

/// Length of a descriptor.
pub(crate) const DESCRIPTOR_BYTES: usize = 16;

/// Address of the first descriptor of a chain.
pub(crate) fn place_of(memory: &Guest, ring: &Ring, head: u16) -> Option<NonNull<u8>> {
    let offset = u64::from(head) * DESCRIPTOR_BYTES as u64;
    let address = ring.table().0.checked_add(offset)?;
    memory.at(GuestAddress(address), DESCRIPTOR_BYTES)
}

/// Present value of the first descriptor of a chain.
pub(crate) fn first(memory: &Guest, ring: &Ring, head: u16) -> Option<Descriptor> {
    let at = place_of(memory, ring, head)?;
    // SAFETY: mapped for the length of a descriptor.
    Some(unsafe { read_volatile(at) })
}

/// Maximum number of reachable descriptors of an indirect table: indices have 16 bits.
const REACHABLE: u32 = 1 << 16;

/// A violation of the specification in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) reason: &'static str,
    /// Its end, and with it the status byte, was not found.
    pub(crate) is_torn: bool,
}

/// Walks a chain to its end even after a defect, since the status byte is there. A chain with more
/// steps than its tables have descriptors is endless.
pub(crate) struct Chain<'a> {
    memory: &'a Guest,
    table: GuestAddress,
    table_len: u32,
    /// Index of the next descriptor; none at the end.
    next: Option<u16>,
    left: u32,
    indirect: bool,
    steps: u32,
    defect: Option<Defect>,
}

impl<'a> Chain<'a> {
    /// The chain beginning at `head` of a table of `table_len` descriptors.
    pub(crate) fn new(memory: &'a Guest, table: GuestAddress, table_len: u16, head: u16) -> Self {
        Self {
            memory,
            table,
            table_len: u32::from(table_len),
            next: Some(head),
            left: u32::from(table_len),
            indirect: false,
            steps: 0,
            defect: None,
        }
    }

    /// The first defect found so far; a missing end takes precedence.
    pub(crate) fn defect(&self) -> Option<Defect> {
        self.defect
    }

    /// Number of descriptors read.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    fn note(&mut self, reason: &'static str) {
        let is_torn = false;
        self.defect.get_or_insert(Defect { reason, is_torn });
    }

    fn load(&self, index: u16) -> Result<Descriptor, &'static str> {
        if u32::from(index) >= self.table_len {
            return Err("a descriptor index is beyond the end of its table");
        }
        let offset = u64::from(index) * DESCRIPTOR_BYTES as u64;
        let address = self.table.0.checked_add(offset).map(GuestAddress);
        address
            .and_then(|address| self.memory.read(address))
            .ok_or("a descriptor is outside of guest memory")
    }

    /// The descriptor at `index`, or the first one of the indirect table it refers to. The error
    /// says why the chain cannot be followed.
    fn step(&mut self, index: u16) -> Result<Descriptor, &'static str> {
        let mut descriptor = self.load(index)?;
        if descriptor.refers_to_indirect_table() && !self.indirect {
            if descriptor.len() % DESCRIPTOR_BYTES as u32 != 0 {
                self.note(
                    "the length of an indirect table is not a multiple of the descriptor size",
                );
            }
            self.indirect = true;
            self.table = descriptor.addr();
            self.table_len = descriptor.len() / DESCRIPTOR_BYTES as u32;
            self.left = self.table_len.min(REACHABLE);
            descriptor = self.load(0)?;
        }
        self.steps += 1;
        self.left = self.left.checked_sub(1).ok_or("the chain has no end")?;
        let end = descriptor.addr().0.checked_add(u64::from(descriptor.len()));
        if end.is_none() {
            self.note("a descriptor extends beyond the address space");
            descriptor = emptied(descriptor);
        }
        if descriptor.refers_to_indirect_table() {
            self.note("nested indirect tables");
            descriptor = emptied(descriptor);
        }
        self.next = descriptor.has_next().then(|| descriptor.next());
        Ok(descriptor)
    }
}

/// The descriptor with an empty buffer in place of its unusable one.
fn emptied(descriptor: Descriptor) -> Descriptor {
    let (flags, next) = (descriptor.flags(), descriptor.next());
    Descriptor::new(descriptor.addr().0, 0, flags, next)
}

impl Iterator for Chain<'_> {
    type Item = Descriptor;

    fn next(&mut self) -> Option<Descriptor> {
        let index = self.next.take()?;
        let step = self.step(index);
        if let Err(reason) = step {
            let is_torn = true;
            self.defect = Some(Defect { reason, is_torn });
        }
        step.ok()
    }
}
