//! The memory of the guest, as the front end shares it.

use std::fs::File;
use std::io;
use std::sync::Arc;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap};

/// Most regions of a guest's memory.
pub(crate) const REGIONS_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Region {
    guest: u64,
    user: u64,
    size: u64,
}

/// Mapped memory and where the front end itself has it mapped. Changing it makes another one, so
/// that operations in flight keep theirs.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) map: Arc<GuestMemoryMmap>,
    regions: Vec<Region>,
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

impl Memory {
    /// Maps all of `regions`, each from its file.
    pub(crate) fn of(regions: &[VhostUserMemoryRegion], files: Vec<File>) -> io::Result<Self> {
        let mut memory = Self::default();
        for (region, file) in regions.iter().zip(files) {
            memory = memory.with(region, file)?;
        }
        Ok(memory)
    }

    /// This memory and one region more.
    pub(crate) fn with(&self, region: &VhostUserMemoryRegion, file: File) -> io::Result<Self> {
        if self.regions.len() >= REGIONS_MAX {
            return Err(invalid(format!("more than {REGIONS_MAX} memory regions")));
        }
        let (guest, size) = (region.guest_phys_addr, region.memory_size);
        let length = usize::try_from(size).map_err(|_| invalid("memory region too large"))?;
        let user = region.user_addr;
        user.checked_add(size)
            .ok_or_else(|| invalid("memory region past the end of the address space"))?;
        let backing = FileOffset::new(file, region.mmap_offset);
        let mapped = GuestRegionMmap::from_range(GuestAddress(guest), length, Some(backing))
            .map_err(|error| invalid(format!("cannot map a memory region: {error}")))?;
        let map = self
            .map
            .insert_region(Arc::new(mapped))
            .map_err(|error| invalid(format!("memory region at {guest:#x}: {error}")))?;
        let mut regions = self.regions.clone();
        regions.push(Region { guest, user, size });
        Ok(Self {
            map: Arc::new(map),
            regions,
        })
    }

    /// This memory without one region.
    pub(crate) fn without(&self, region: &VhostUserMemoryRegion) -> io::Result<Self> {
        let (guest, size) = (region.guest_phys_addr, region.memory_size);
        let (map, _) = self
            .map
            .remove_region(GuestAddress(guest), size)
            .map_err(|_| invalid(format!("no memory region at {guest:#x}")))?;
        let mut regions = self.regions.clone();
        regions.retain(|known| known.guest != guest);
        Ok(Self {
            map: Arc::new(map),
            regions,
        })
    }

    /// The guest's address of what the front end itself sees at `user`.
    pub(crate) fn guest_address(&self, user: u64) -> Option<GuestAddress> {
        self.regions.iter().find_map(|region| {
            let offset = user.checked_sub(region.user)?;
            (offset < region.size).then(|| GuestAddress(region.guest + offset))
        })
    }
}
