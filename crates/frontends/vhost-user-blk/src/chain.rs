//! The descriptors of one chain (virtio 1.2, section 2.7.5), indirect tables included.
//!
//! It walks from any head, since a request that the last daemon left open is no longer in the
//! available ring.

use crate::guest::Guest;
use crate::ring::Ring;
use std::ptr::NonNull;
use virtio_queue::desc::split::Descriptor;
use vm_memory::GuestAddress;

/// Length of a descriptor.
pub(crate) const DESCRIPTOR_BYTES: usize = 16;

/// Where the first descriptor of a chain is.
pub(crate) fn place_of(memory: &Guest, ring: &Ring, head: u16) -> Option<NonNull<u8>> {
    let offset = u64::from(head) * DESCRIPTOR_BYTES as u64;
    let address = ring.table().0.checked_add(offset)?;
    memory.at(GuestAddress(address), DESCRIPTOR_BYTES)
}

/// The first descriptor of a chain, as it is now.
pub(crate) fn first(memory: &Guest, ring: &Ring, head: u16) -> Option<Descriptor> {
    let at = place_of(memory, ring, head)?;
    // SAFETY: mapped for the descriptor's length; any bytes are one.
    Some(unsafe { at.cast::<Descriptor>().read_unaligned() })
}

/// Walks a chain; an error ends it and says what is wrong.
pub(crate) struct Chain<'a> {
    memory: &'a Guest,
    table: GuestAddress,
    table_len: u32,
    /// The next descriptor's index; none at the end.
    next: Option<u16>,
    left: usize,
    indirect: bool,
}

impl<'a> Chain<'a> {
    /// The chain that begins at `head` of a table of `table_len` descriptors, at most `limit`
    /// descriptors long.
    pub(crate) fn new(
        memory: &'a Guest,
        table: GuestAddress,
        table_len: u16,
        head: u16,
        limit: usize,
    ) -> Self {
        Self {
            memory,
            table,
            table_len: u32::from(table_len),
            next: Some(head),
            left: limit,
            indirect: false,
        }
    }

    fn load(&self, index: u16) -> Result<Descriptor, &'static str> {
        if u32::from(index) >= self.table_len {
            return Err("a descriptor's index passes the end of its table");
        }
        let offset = u64::from(index) * DESCRIPTOR_BYTES as u64;
        let address = self.table.0.checked_add(offset).map(GuestAddress);
        address
            .and_then(|address| self.memory.read(address))
            .ok_or("a descriptor lies outside of the memory")
    }

    fn step(&mut self, index: u16) -> Result<Descriptor, &'static str> {
        let mut descriptor = self.load(index)?;
        if descriptor.refers_to_indirect_table() {
            if self.indirect {
                return Err("an indirect table refers to another one");
            }
            if descriptor.len() == 0 || descriptor.len() % DESCRIPTOR_BYTES as u32 != 0 {
                return Err("an indirect table is no whole number of descriptors");
            }
            self.indirect = true;
            self.table = descriptor.addr();
            self.table_len = descriptor.len() / DESCRIPTOR_BYTES as u32;
            descriptor = self.load(0)?;
            if descriptor.refers_to_indirect_table() {
                return Err("an indirect table refers to another one");
            }
        }
        self.left = self
            .left
            .checked_sub(1)
            .ok_or("the chain is longer than the ring")?;
        let end = descriptor.addr().0.checked_add(u64::from(descriptor.len()));
        if end.is_none() {
            return Err("a descriptor passes the end of the address space");
        }
        self.next = descriptor.has_next().then(|| descriptor.next());
        Ok(descriptor)
    }
}

impl Iterator for Chain<'_> {
    type Item = Result<Descriptor, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next.take()?;
        Some(self.step(index))
    }
}
