//! Memory for the data of slots, as direct I/O wants it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const PAGE: usize = 4096;

/// Pages of zeroes, aligned.
pub struct Pages {
    at: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory exclusively.
unsafe impl Send for Pages {}

impl Pages {
    /// A number of bytes, rounded up.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(PAGE).max(PAGE);
        let layout = Layout::from_size_align(bytes, PAGE).expect("a size below the address space");
        // SAFETY: the size is not zero.
        let at = unsafe { alloc_zeroed(layout) };
        match NonNull::new(at) {
            Some(at) => Self { at, layout },
            None => handle_alloc_error(layout),
        }
    }

    /// A part of it, for the system.
    pub fn part(&self, at: usize, length: usize) -> *mut u8 {
        assert!(at + length <= self.layout.size(), "outside of the memory");
        // SAFETY: within the memory.
        unsafe { self.at.as_ptr().add(at) }
    }

    /// Copies bytes in. The system must not be using that part.
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        let part = self.part(at, bytes.len());
        // SAFETY: the part was checked, and does not overlap with what is borrowed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), part, bytes.len()) };
    }

    /// Copies bytes out. The system must not be using that part.
    pub fn fetch(&self, at: usize, bytes: &mut [u8]) {
        let part = self.part(at, bytes.len());
        // SAFETY: as for `fill`.
        unsafe { std::ptr::copy_nonoverlapping(part, bytes.as_mut_ptr(), bytes.len()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, given back once.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}
