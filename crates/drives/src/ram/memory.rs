//! Memory of a drive: mapped, zeroed, touched only where it is used.

use std::io;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use units::Coming;

/// Bytes under one lock.
const PIECE: u64 = 1 << 20;
/// Locks; pieces share them in turn.
const LOCKS: usize = 64;
/// Bytes in a page that can be given back.
const PAGE: u64 = 4096;

/// Memory that several threads read and write, a piece of 1 MiB at a time.
///
/// A transfer that spans pieces is not atomic, as on a disk.
pub(crate) struct Memory {
    base: NonNull<u8>,
    size: u64,
    locks: Vec<RwLock<()>>,
}

// SAFETY: the memory is reached only under its locks.
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
        // SAFETY: our own new mapping.
        unsafe { libc::madvise(base.as_ptr(), length, libc::MADV_HUGEPAGE) };
        Ok(Self {
            base: base.cast(),
            size,
            locks: (0..LOCKS).map(|_| RwLock::new(())).collect(),
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn lock_of(&self, offset: u64) -> &RwLock<()> {
        &self.locks[(offset / PIECE) as usize % LOCKS]
    }

    fn shared(&self, offset: u64) -> RwLockReadGuard<'_, ()> {
        self.lock_of(offset)
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self, offset: u64) -> RwLockWriteGuard<'_, ()> {
        self.lock_of(offset)
            .write()
            .unwrap_or_else(PoisonError::into_inner)
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
        for (at, range) in pieces(offset, dst.len() as u64) {
            let part = &mut dst[range];
            let src = self.at(at, part.len());
            let _guard = self.shared(at);
            // SAFETY: both are valid for the length; writers are kept out by the lock.
            unsafe { std::ptr::copy_nonoverlapping(src, part.as_mut_ptr(), part.len()) }
        }
    }

    /// Writes `src` from `offset` on.
    pub(crate) fn write(&self, offset: u64, src: &[u8]) {
        for (at, range) in pieces(offset, src.len() as u64) {
            let part = &src[range];
            let dst = self.at(at, part.len());
            let _guard = self.alone(at);
            // SAFETY: both are valid for the length; everybody else is kept out by the lock.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), dst, part.len()) }
        }
    }

    /// A range that will be used in a moment, as much of it as there is.
    pub(crate) fn coming(&self, offset: u64, len: usize) -> Coming {
        let end = offset.saturating_add(len as u64).min(self.size);
        match end.checked_sub(offset) {
            Some(there) => Coming::new(self.at(offset, 0), there as usize),
            None => Coming::NOTHING,
        }
    }

    /// Shows `see` a range; false when it lies in several pieces.
    pub(crate) fn read_in_place(
        &self,
        offset: u64,
        len: usize,
        see: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let is_one = is_one_piece(offset, len);
        if is_one {
            let src = self.at(offset, len);
            let _guard = self.shared(offset);
            // SAFETY: valid for the length; writers are kept out by the lock.
            see(unsafe { std::slice::from_raw_parts(src, len) });
        }
        is_one
    }

    /// Lets `fill` write a range; false when it lies in several pieces.
    pub(crate) fn write_in_place(
        &self,
        offset: u64,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let is_one = is_one_piece(offset, len);
        if is_one {
            let dst = self.at(offset, len);
            let _guard = self.alone(offset);
            // SAFETY: valid for the length; everybody else is kept out by the lock.
            fill(unsafe { std::slice::from_raw_parts_mut(dst, len) });
        }
        is_one
    }

    /// Zeroes a range and gives its whole pages back to the system.
    pub(crate) fn discard(&self, offset: u64, len: u64) {
        let end = offset + len;
        let first_page = offset.next_multiple_of(PAGE).min(end);
        let last_page = (end / PAGE * PAGE).max(first_page);
        self.zero(offset, first_page - offset);
        self.zero(last_page, end - last_page);
        if first_page < last_page {
            let _all: Vec<_> = (0..LOCKS as u64)
                .map(|index| self.alone(index * PIECE))
                .collect();
            let length = (last_page - first_page) as usize;
            let start = self.at(first_page, length);
            // SAFETY: whole pages of our own private mapping, with everybody else kept out; they
            // read as zeroes afterwards. It cannot fail for such a range.
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
        // SAFETY: mapped in `new` with this length; nobody else holds it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size as usize) };
    }
}

fn is_one_piece(offset: u64, len: usize) -> bool {
    len > 0 && offset / PIECE == (offset + len as u64 - 1) / PIECE
}

/// Cuts a range at the borders of pieces: each part's offset and its place within the range.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done;
        let take = (PIECE - at % PIECE).min(len - done);
        let range = done as usize..(done + take) as usize;
        done += take;
        (take > 0).then_some((at, range))
    })
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
    fn a_transfer_crosses_pieces() {
        let memory = Memory::new(4 << 20).unwrap();
        let data: Vec<u8> = (0..3u32 << 20).map(|index| (index % 251) as u8).collect();
        memory.write(PIECE / 2, &data);
        let mut back = vec![0; data.len()];
        memory.read(PIECE / 2, &mut back);
        assert!(back == data);
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
