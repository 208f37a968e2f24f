//! Memory of a drive: mapped, zeroed, touched only where it is used.
//!
//! Several threads may use it concurrently. A read of a range that is being written may mix
//! both contents, as with a disk: writers have to exclude readers, as the engine does for blocks that are not in the map yet.
//! So it has no locks, and is only ever reached through raw pointers.

use block::{Lent, Shown};
use std::io;
use std::ptr::NonNull;
use units::Coming;

/// Bytes in a page that can be given back.
const PAGE: u64 = 4096;

/// The memory.
pub(crate) struct Memory {
    base: NonNull<u8>,
    size: u64,
}

// SAFETY: it is the process's, mapped as long as this lives, and reached by copies through raw pointers alone.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `size` bytes of zeroes; the system backs them when they are first written.
    pub(crate) fn new(size: u64) -> io::Result<Self> {
        let length = usize::try_from(size).map_err(io::Error::other)?;
        // SAFETY: a new private mapping at an address of the system's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at null"))?;
        // A hint: with small pages a block somewhere costs the processor a walk through its tables.
        // SAFETY: a new mapping owned here.
        unsafe { libc::madvise(base.as_ptr(), length, libc::MADV_HUGEPAGE) };
        Ok(Self {
            base: base.cast(),
            size,
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Address of `offset`, after checking that `len` bytes from there exist.
    fn at(&self, offset: u64, len: usize) -> *mut u8 {
        let end = offset.checked_add(len as u64);
        assert!(end.is_some_and(|end| end <= self.size), "outside of memory");
        // SAFETY: within the mapping, as just checked.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    /// Fills `dst` from `offset` on.
    pub(crate) fn read(&self, offset: u64, dst: &mut [u8]) {
        self.shown(offset, dst.len()).copy_out(dst);
    }

    /// Writes `src` from `offset` on.
    pub(crate) fn write(&self, offset: u64, src: &[u8]) {
        let dst = self.at(offset, src.len());
        // SAFETY: both are valid for the length, and `src` is elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), dst, src.len()) }
    }

    /// A range that will be used in a moment, as much of it as there is.
    pub(crate) fn coming(&self, offset: u64, len: usize) -> Coming {
        let end = offset.saturating_add(len as u64).min(self.size);
        match end.checked_sub(offset) {
            Some(there) => Coming::new(self.at(offset, 0), there as usize),
            None => Coming::NOTHING,
        }
    }

    /// A range, to be read.
    pub(crate) fn shown(&self, offset: u64, len: usize) -> Shown<'_> {
        // SAFETY: within the mapping, which is there as long as this is.
        unsafe { Shown::new(self.at(offset, len), len) }
    }

    /// A range, to be written.
    pub(crate) fn lent(&self, offset: u64, len: usize) -> Lent<'_> {
        // SAFETY: as above.
        unsafe { Lent::new(self.at(offset, len), len) }
    }

    /// Zeroes a range and gives its whole pages back to the system.
    pub(crate) fn discard(&self, offset: u64, len: u64) {
        let end = offset + len;
        let first_page = offset.next_multiple_of(PAGE).min(end);
        let last_page = (end / PAGE * PAGE).max(first_page);
        self.zero(offset, first_page - offset);
        self.zero(last_page, end - last_page);
        if first_page < last_page {
            let length = (last_page - first_page) as usize;
            let start = self.at(first_page, length);
            // SAFETY: whole pages of our own private mapping; they read as zeroes afterwards. It cannot fail
            // for such a range.
            unsafe { libc::madvise(start.cast(), length, libc::MADV_DONTNEED) };
        }
    }

    fn zero(&self, offset: u64, len: u64) {
        if len > 0 {
            self.write(offset, &vec![0; len as usize]);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; no other reference is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_used_lies_within() {
        let memory = Memory::new(4 << 20).unwrap();
        let start = memory.at(8192, 0);
        assert_eq!(memory.coming(8192, 4096), Coming::new(start, 4096));
        let last = Coming::new(memory.at((4 << 20) - 512, 0), 512);
        assert_eq!(memory.coming((4 << 20) - 512, 4096), last);
        for outside in [(4 << 20) + 1, u64::MAX] {
            assert_eq!(memory.coming(outside, 4096), Coming::NOTHING);
        }
    }

    #[test]
    fn what_is_written_is_read_in_place_and_not() {
        let memory = Memory::new(4 << 20).unwrap();
        let data: Vec<u8> = (0..3u32 << 20).map(|index| (index % 251) as u8).collect();
        memory.write(1000, &data);
        let mut back = vec![0; data.len()];
        memory.read(1000, &mut back);
        assert!(back == data);
        memory.lent(4096, 4096).copy_in(&data[..4096]);
        memory.shown(4096, 4096).copy_out(&mut back[..4096]);
        assert!(back[..4096] == data[..4096]);
        memory.read(4096 - 512, &mut back[..512]);
        assert!(back[..512] == data[4096 - 512 - 1000..][..512]);
    }

    #[test]
    fn a_discarded_range_reads_as_zeroes_and_nothing_else_changes() {
        let memory = Memory::new(4 << 20).unwrap();
        memory.write(0, &vec![7; 4 << 20]);
        memory.discard(1536, 2 << 20);
        let mut back = vec![1; 4 << 20];
        memory.read(0, &mut back);
        let end = 1536 + (2 << 20);
        assert!(back[..1536].iter().all(|byte| *byte == 7));
        assert!(back[1536..end].iter().all(|byte| *byte == 0));
        assert!(back[end..].iter().all(|byte| *byte == 7));
    }
}
