//! One piece of memory that buffers are carved from and never returned to.

use std::cell::Cell;
use std::ptr::NonNull;

/// Size of a huge page, which the arena is aligned to so that the system can back it with them.
const HUGE: usize = 2 << 20;

pub(super) struct Arena {
    /// The original mapping, to unmap it.
    mapped: NonNull<u8>,
    mapped_len: usize,
    start: NonNull<u8>,
    len: usize,
    used: Cell<usize>,
}

impl Arena {
    /// Memory of `bytes`, rounded up to 2 MiB, all zeroes; `None` when the system has none.
    pub fn new(bytes: usize) -> Option<Self> {
        let len = bytes.max(1).checked_next_multiple_of(HUGE)?;
        let mapped_len = len.checked_add(HUGE)?;
        // SAFETY: a new private mapping at an address of the system's choice.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = NonNull::new(mapped.cast::<u8>())?;
        let skip = mapped.align_offset(HUGE);
        // SAFETY: less than 2 MiB on, within the mapping.
        let start = unsafe { mapped.add(skip) };
        // SAFETY: is within the mapping; a system without huge pages refuses, which is no harm.
        unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Some(Self {
            mapped,
            mapped_len,
            start,
            len,
            used: Cell::new(0),
        })
    }

    pub fn range(&self) -> (*mut u8, usize) {
        (self.start.as_ptr(), self.len)
    }

    /// The next `capacity` bytes (a power of two of pages), if available.
    pub fn carve(&self, capacity: usize) -> Option<NonNull<u8>> {
        let at = self.used.get();
        let end = at.checked_add(capacity).filter(|end| *end <= self.len)?;
        self.used.set(end);
        // SAFETY: `at` is within the arena.
        Some(unsafe { self.start.add(at) })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; every buffer holds the store that holds the arena.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_len) };
    }
}
