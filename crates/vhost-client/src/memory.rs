//! Memory that both sides see.

use crate::raw::memory_file;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::AtomicU16;

/// The guest's address of the memory's first byte.
pub(crate) const GUEST_BASE: u64 = 0x4000_0000;

/// A mapped memfd.
pub(crate) struct SharedMemory {
    file: File,
    map: *mut u8,
    len: usize,
}

// SAFETY: plain mapped memory; each queue keeps to its own part, and what the other side writes
// is read by atomics or after an atomic said that it is there.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let file = memory_file(len as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping; nothing else is unmapped by it.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            file,
            map: map.cast(),
            len,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Cuts the file to its first `len` bytes; what lies behind them must not be touched here any longer.
    pub(crate) fn cut(&self, len: usize) -> io::Result<()> {
        self.file.set_len(len as u64)
    }

    /// This process's address of the byte at `offset`.
    pub(crate) fn user(&self, offset: usize) -> u64 {
        self.map as u64 + offset as u64
    }

    /// The guest's address of the byte at `offset`.
    pub(crate) fn guest(&self, offset: usize) -> u64 {
        GUEST_BASE + offset as u64
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.len, "outside of the shared memory");
        // SAFETY: within the mapping.
        unsafe { self.map.add(offset) }
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.at(offset, bytes.len());
        // SAFETY: the range was checked; the memory is no Rust object that could be borrowed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        let source = self.at(offset, bytes.len());
        // SAFETY: as for writing.
        unsafe { std::ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// A 16-bit number that the other side reads or writes too.
    pub(crate) fn half(&self, offset: usize) -> &AtomicU16 {
        assert!(offset.is_multiple_of(2));
        // SAFETY: within the mapping, aligned, and only accessed by atomics.
        unsafe { AtomicU16::from_ptr(self.at(offset, 2).cast()) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, unmapped once.
        unsafe { libc::munmap(self.map.cast(), self.len) };
    }
}
