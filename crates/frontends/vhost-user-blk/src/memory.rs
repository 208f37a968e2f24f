//! Guest memory as shared by the monitor.

use crate::guest::GuestMap;
use crate::shared::{MEMORY_MAX, Mapping, PAGE};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::div_rem;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::GuestAddress;

/// Maximum number of regions.
pub(crate) const REGIONS_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Region {
    guest: u64,
    user: u64,
    size: u64,
}

/// Mapped memory, with the monitor's own addresses. Immutable: a change creates a new instance, so
/// that operations in flight keep theirs.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) map: Arc<GuestMap>,
    regions: Vec<Region>,
    /// Set when a part of it, or of earlier or later memory of the session, was truncated.
    cut: Arc<AtomicBool>,
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

impl Memory {
    /// Replaces all regions, mapping each from its file.
    ///
    /// # Errors
    /// As [`Memory::with`].
    pub(crate) fn exchanged(
        &self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
    ) -> io::Result<Self> {
        let mut memory = Self {
            cut: self.cut.clone(),
            ..Self::default()
        };
        for (region, file) in regions.iter().zip(files) {
            memory = memory.with(region, file)?;
        }
        Ok(memory)
    }

    /// The mark that is set when memory was truncated.
    pub(crate) fn cut(&self) -> &Arc<AtomicBool> {
        &self.cut
    }

    /// This memory with an additional region.
    ///
    /// # Errors
    /// When there are too many regions or bytes, the region is not page-aligned or overlaps another
    /// one in guest addresses, or its file is not in memory or too short. The monitor's own
    /// addresses may overlap: they only locate the rings.
    pub(crate) fn with(&self, region: &VhostUserMemoryRegion, file: File) -> io::Result<Self> {
        if self.regions.len() >= REGIONS_MAX {
            return Err(invalid(format!("more than {REGIONS_MAX} memory regions")));
        }
        let (guest, size) = (region.guest_phys_addr, region.memory_size);
        let user = region.user_addr;
        for (whose, first) in [("guest's", guest), ("front end's", user)] {
            // Rings and descriptors are aligned in guest addresses and accessed by atomics at ours.
            if div_rem(first, PAGE).1 != 0 || first.checked_add(size).is_none() {
                return Err(invalid(format!(
                    "memory region of {size} bytes at the {whose} address {first:#x}: it must \
                     begin at a page of {PAGE} bytes and end within the address space"
                )));
            }
        }
        let others: u64 = self.regions.iter().map(|region| region.size).sum();
        if size > MEMORY_MAX - others {
            return Err(invalid(format!("more than {MEMORY_MAX} bytes of memory")));
        }
        let overlaps =
            |other: &Region| guest < other.guest + other.size && other.guest < guest + size;
        if self.regions.iter().any(overlaps) {
            return Err(invalid(format!(
                "memory region at {guest:#x} overlaps another one"
            )));
        }
        let mapping = Mapping::new(&file, region.mmap_offset, size, &self.cut)?;
        let map = self.map.with(GuestAddress(guest), mapping)?;
        let mut regions = self.regions.clone();
        regions.push(Region { guest, user, size });
        Ok(Self {
            map: Arc::new(map),
            regions,
            cut: self.cut.clone(),
        })
    }

    /// This memory without a region.
    ///
    /// # Errors
    /// When the region does not exist.
    pub(crate) fn without(&self, region: &VhostUserMemoryRegion) -> io::Result<Self> {
        let (guest, size) = (region.guest_phys_addr, region.memory_size);
        let map = self.map.without(GuestAddress(guest), size)?;
        let mut regions = self.regions.clone();
        regions.retain(|known| known.guest != guest);
        Ok(Self {
            map: Arc::new(map),
            regions,
            cut: self.cut.clone(),
        })
    }

    /// The guest address of the monitor's address `user`.
    pub(crate) fn guest_address(&self, user: u64) -> Option<GuestAddress> {
        self.regions.iter().find_map(|region| {
            let offset = user.checked_sub(region.user)?;
            (offset < region.size).then(|| GuestAddress(region.guest + offset))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::{Sharing, memory_file};

    fn region(guest: u64, user: u64, size: u64, offset: u64) -> VhostUserMemoryRegion {
        VhostUserMemoryRegion {
            guest_phys_addr: guest,
            memory_size: size,
            user_addr: user,
            mmap_offset: offset,
        }
    }

    #[test]
    fn regions_are_validated_before_mapping() {
        const LEN: u64 = 1 << 20;
        const FIRST: u64 = 0x10_0000;
        const USER: u64 = 0x7f00_0000_0000;
        let file = || memory_file(LEN, Sharing::Unsealed);
        let memory = Memory::default();
        let memory = memory.with(&region(FIRST, USER, LEN, 0), file()).unwrap();
        for (name, guest, user, size, offset, fits) in [
            ("behind it", FIRST + LEN, USER + LEN, LEN, 0, true),
            (
                "the same addresses of the monitor",
                FIRST + LEN,
                USER,
                LEN,
                0,
                true,
            ),
            ("a part of the file", 0, 0, 4096, LEN - 4096, true),
            ("the same", FIRST, USER, LEN, 0, false),
            ("its last byte", FIRST + LEN - 4096, 0, LEN, 0, false),
            ("around it", FIRST - 4096, 0, LEN, 0, false),
            ("an unaligned guest address", 1, 0, 4096, 0, false),
            ("an unaligned monitor address", 0, 1, 4096, 0, false),
            (
                "a guest address beyond the end",
                u64::MAX - 4095,
                0,
                8192,
                0,
                false,
            ),
            (
                "a monitor address beyond the end",
                0,
                u64::MAX - 4095,
                8192,
                0,
                false,
            ),
            ("longer than its file", 0, 0, LEN + 4096, 0, false),
            ("beyond the end of its file", 0, 0, 4096, LEN, false),
            (
                "an offset beyond the end",
                0,
                0,
                8192,
                u64::MAX - 4095,
                false,
            ),
            ("nothing", 0, 0, 0, 0, false),
            (
                "beyond the limit of memory",
                1 << 40,
                0,
                MEMORY_MAX,
                0,
                false,
            ),
            ("everything", 0, 0, u64::MAX, 0, false),
        ] {
            let added = memory.with(&region(guest, user, size, offset), file());
            let why = added.as_ref().err().map(ToString::to_string);
            assert_eq!(added.is_ok(), fits, "{name}: {why:?}");
        }
        assert_eq!(
            memory.guest_address(USER + 16),
            Some(GuestAddress(FIRST + 16))
        );
        assert!(memory.without(&region(FIRST, USER, 4096, 0)).is_err());
        let without = memory.without(&region(FIRST, USER, LEN, 0)).unwrap();
        assert_eq!(without.guest_address(USER + 16), None);
    }
}
