//! Guest memory, mapped into this process.
//!
//! The guest may modify it at any time: it is accessed only through raw pointers, each value once
//! with volatile accesses, which the compiler neither duplicates nor omits.

use crate::shared::Mapping;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{
    ByteValued, Bytes, GuestAddress, GuestMemory, GuestMemoryBackend, GuestMemoryMmap,
    GuestMemoryRegion, GuestRegionMmap, MemoryRegionAddress, Permissions,
};

/// The regions of guest memory, and their mappings.
#[derive(Default)]
pub(crate) struct GuestMap {
    map: GuestMemoryMmap,
    /// By guest address; none for memory that maps itself, as in tests.
    mappings: Vec<(GuestAddress, Arc<Mapping>)>,
}

impl Deref for GuestMap {
    type Target = GuestMemoryMmap;

    fn deref(&self) -> &GuestMemoryMmap {
        &self.map
    }
}

impl From<GuestMemoryMmap> for GuestMap {
    fn from(map: GuestMemoryMmap) -> Self {
        let mappings = Vec::new();
        Self { map, mappings }
    }
}

impl GuestMap {
    /// This memory with an additional region at the guest address `first`.
    ///
    /// # Errors
    /// When it overlaps another region.
    pub(crate) fn with(&self, first: GuestAddress, mapping: Mapping) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let builder = MmapRegionBuilder::new(mapping.len()).with_mmap_prot(protection);
        // SAFETY: the mapping has that length, and is kept as long as the region.
        let builder = unsafe { builder.with_raw_mmap_pointer(mapping.at().as_ptr()) };
        let region = builder.build().map_err(|error| wrong(error.to_string()))?;
        let region = GuestRegionMmap::new(region, first)
            .ok_or_else(|| wrong("memory region extends beyond the address space".into()))?;
        let map = self.map.insert_region(Arc::new(region));
        let mut mappings = self.mappings.clone();
        mappings.push((first, Arc::new(mapping)));
        Ok(Self {
            map: map.map_err(|error| wrong(error.to_string()))?,
            mappings,
        })
    }

    /// This memory without the region of `size` bytes at the guest address `first`.
    ///
    /// # Errors
    /// When it does not exist.
    pub(crate) fn without(&self, first: GuestAddress, size: u64) -> io::Result<Self> {
        let none = || {
            let why = format!("no memory region of {size} bytes at {:#x}", first.0);
            io::Error::new(io::ErrorKind::InvalidInput, why)
        };
        let (map, _) = self.map.remove_region(first, size).map_err(|_| none())?;
        let mut mappings = self.mappings.clone();
        mappings.retain(|(other, _)| *other != first);
        Ok(Self { map, mappings })
    }
}

/// Copies a value that may be modified concurrently.
///
/// # Safety
/// The length of the value must be mapped readable at `at`.
#[inline]
pub(crate) unsafe fn read_volatile<T: ByteValued>(at: NonNull<u8>) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let (from, to, len) = (at.as_ptr(), value.as_mut_ptr().cast::<u8>(), size_of::<T>());
    let is_aligned = (from as usize).is_multiple_of(8);
    let words = if is_aligned { len / 8 } else { 0 };
    for word in 0..words {
        // SAFETY: within the value on both sides; the source is aligned, the target need not be.
        unsafe {
            let bytes = from.cast::<u64>().add(word).read_volatile();
            to.cast::<u64>().add(word).write_unaligned(bytes);
        }
    }
    for index in 8 * words..len {
        // SAFETY: within the value on both sides.
        unsafe { to.add(index).write(from.add(index).read_volatile()) };
    }
    // SAFETY: all bytes were written, and all bit patterns are valid.
    unsafe { value.assume_init() }
}

/// Guest memory with a cache of the last region, which is usually the next one as well.
pub(crate) struct Guest {
    map: Arc<GuestMap>,
    last: Cell<Option<Mapped>>,
}

/// A region: first address, length in bytes, and mapped address.
#[derive(Clone, Copy)]
struct Mapped {
    first: u64,
    len: u64,
    at: NonNull<u8>,
}

// SAFETY: the pointer leads into memory that `map` keeps mapped for all threads.
unsafe impl Send for Guest {}

impl Guest {
    pub(crate) fn new(map: Arc<GuestMap>) -> Self {
        let last = Cell::new(None);
        Self { map, last }
    }

    /// The mappings.
    pub(crate) fn map(&self) -> &Arc<GuestMap> {
        &self.map
    }

    /// Mapped address of `len` bytes at `address`, if they are in one region. Valid as long as the
    /// map.
    #[inline]
    pub(crate) fn at(&self, address: GuestAddress, len: usize) -> Option<NonNull<u8>> {
        let within = |mapped: &Mapped| mapped.at(address.0, len as u64);
        if let Some(at) = self.last.get().as_ref().and_then(within) {
            return Some(at);
        }
        let mapped = Mapped::of(GuestMemoryBackend::find_region(&**self.map, address)?)?;
        self.last.set(Some(mapped));
        within(&mapped)
    }

    /// Copies a value from any address.
    #[inline]
    pub(crate) fn read<T: ByteValued>(&self, address: GuestAddress) -> Option<T> {
        match self.at(address, size_of::<T>()) {
            // SAFETY: mapped for the length of the value.
            Some(at) => Some(unsafe { read_volatile(at) }),
            None => self.map.read_obj(address).ok(),
        }
    }

    /// Writes a byte; false if the address is not mapped.
    #[inline]
    pub(crate) fn write_byte(&self, address: GuestAddress, byte: u8) -> bool {
        let at = self.at(address, 1);
        if let Some(at) = at {
            // SAFETY: mapped writable.
            unsafe { at.write_volatile(byte) };
        }
        at.is_some()
    }

    /// Calls `take` with the mapped address of each piece of a range; false if part of it is not
    /// mapped.
    pub(crate) fn pieces(
        &self,
        address: GuestAddress,
        len: usize,
        access: Permissions,
        mut take: impl FnMut(NonNull<u8>, usize),
    ) -> bool {
        if let Some(at) = self.at(address, len) {
            take(at, len);
            return true;
        }
        let Ok(slices) = GuestMemory::get_slices(&**self.map, address, len, access) else {
            return false;
        };
        for slice in slices {
            let Ok(slice) = slice else { return false };
            let at = NonNull::new(slice.ptr_guard_mut().as_ptr());
            let Some(at) = at else { return false };
            take(at, slice.len());
        }
        true
    }
}

impl Mapped {
    fn of(region: &GuestRegionMmap) -> Option<Self> {
        let at = region.get_host_address(MemoryRegionAddress(0)).ok()?;
        Some(Self {
            first: region.start_addr().0,
            len: region.len(),
            at: NonNull::new(at)?,
        })
    }

    #[inline]
    fn at(&self, address: u64, len: u64) -> Option<NonNull<u8>> {
        let offset = address.checked_sub(self.first)?;
        let end = offset.checked_add(len)?;
        // SAFETY: within the region's mapping.
        (end <= self.len).then(|| unsafe { self.at.add(offset as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_of(ranges: &[(GuestAddress, usize)]) -> Arc<GuestMap> {
        Arc::new(GuestMemoryMmap::from_ranges(ranges).unwrap().into())
    }

    #[test]
    fn values_are_read_at_any_alignment() {
        let bytes: [u8; 64] = std::array::from_fn(|index| index as u8);
        for at in 0..32 {
            let from = NonNull::from(&bytes[at]);
            // SAFETY: the next 24 bytes belong to the array.
            let words: [u8; 24] = unsafe { read_volatile(from) };
            assert_eq!(words[..], bytes[at..at + 24]);
            // SAFETY: as above.
            let half: u16 = unsafe { read_volatile(from) };
            assert_eq!(half.to_le_bytes(), bytes[at..at + 2]);
        }
    }

    #[test]
    fn addresses_outside_of_regions_are_not_mapped() {
        let ranges = [
            (GuestAddress(0x1000), 0x1000),
            (GuestAddress(0x4000), 0x1000),
        ];
        let guest = Guest::new(map_of(&ranges));
        for (address, len, found) in [
            (0x1000, 0x1000, true),
            (0x1fff, 1, true),
            (0x1fff, 2, false),
            (0x0fff, 1, false),
            (0x2000, 1, false),
            (0x4ffe, 2, true),
            (0x4ffe, usize::MAX, false),
            (u64::MAX, 2, false),
        ] {
            let at = guest.at(GuestAddress(address), len);
            assert_eq!(at.is_some(), found, "{len} bytes at {address:#x}");
        }
        guest.map().write_obj(7u32, GuestAddress(0x4010)).unwrap();
        assert_eq!(guest.read::<u32>(GuestAddress(0x4010)), Some(7));
        assert_eq!(guest.read::<u32>(GuestAddress(0x4ffe)), None);
        assert!(guest.write_byte(GuestAddress(0x4010), 9));
        assert_eq!(guest.read::<u32>(GuestAddress(0x4010)), Some(9));
        assert!(!guest.write_byte(GuestAddress(0x5000), 9));
    }

    #[test]
    fn range_across_regions_is_returned_in_pieces() {
        let ranges = [(GuestAddress(0), 0x1000), (GuestAddress(0x1000), 0x1000)];
        let guest = Guest::new(map_of(&ranges));
        let mut lens = Vec::new();
        let start = GuestAddress(0xff0);
        assert!(guest.pieces(start, 0x30, Permissions::Read, |_, len| lens.push(len)));
        assert_eq!(lens, [0x10, 0x20]);
        let outside = guest.pieces(start, 0x1011, Permissions::Read, |_, _| {});
        assert!(!outside);
        guest
            .map()
            .write_obj(0x0102_0304u32, GuestAddress(0xffe))
            .unwrap();
        assert_eq!(guest.read::<u32>(GuestAddress(0xffe)), Some(0x0102_0304));
    }
}
