//! Files of shared memory, and their mappings.
//!
//! Only files in memory are accepted: memfd, tmpfs and hugetlbfs. With others an access could wait
//! for a drive, a network or a FUSE server, on a loop that serves other volumes. They are
//! recognised by `F_GET_SEALS`, which only these types support and which, unlike `fstat`, does not
//! access a file system. Files not sealed against truncation are not sealed here: they belong to
//! another process, which the seal would affect permanently, and truncation is survived
//! (`fault.rs`).

use crate::fault::Watch;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::div_rem;

/// Maximum bytes mapped by all sessions: half of a process's address space.
const MAPPED_MAX: u64 = 64 << 40;
/// Maximum bytes of a mapping, and of a session's memory, so that one session cannot use up the
/// total.
pub(crate) const MEMORY_MAX: u64 = 4 << 40;
/// Mapped bytes.
static MAPPED: AtomicU64 = AtomicU64::new(0);
/// Size of a regular page, in bytes.
pub(crate) const PAGE: u64 = 4096;

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

/// Page size of a hugetlbfs file in bytes; none for other files in memory.
fn large_page(file: &File) -> io::Result<Option<u64>> {
    // SAFETY: all zeroes are a valid value.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a system call on a descriptor owned by `file`.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut system) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_large = system.f_type == libc::HUGETLBFS_MAGIC;
    Ok(is_large.then(|| (system.f_bsize as u64).max(PAGE)))
}

/// Whether a descriptor's file is in memory. Does not access a file system.
pub(crate) fn is_in_memory(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: a system call on an open descriptor.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) >= 0 }
}

/// A part of a file, mapped readable and writable until it is dropped. If the file is truncated,
/// missing parts read as zeroes, and the session's mark is set.
pub(crate) struct Mapping {
    at: NonNull<u8>,
    len: usize,
    watch: Option<Watch>,
}

// SAFETY: mapped memory, accessed by atomics and volatile copies only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file` at `offset`; `cut` is set if the file is truncated later.
    ///
    /// # Errors
    /// When the file has an unsupported type or is too short, the range is invalid, or too much is
    /// mapped.
    pub(crate) fn new(
        file: &File,
        offset: u64,
        len: u64,
        cut: &Arc<AtomicBool>,
    ) -> io::Result<Self> {
        if !is_in_memory(file.as_fd()) {
            return Err(invalid(
                "the memory is not a memfd or a file of tmpfs or hugetlbfs: configure the monitor to share such memory",
            ));
        }
        let held = file.metadata()?.len();
        if offset.checked_add(len).is_none_or(|end| end > held) {
            return Err(invalid(format!(
                "the memory's file has {held} bytes, too few for {len} at offset {offset}"
            )));
        }
        let large_page = large_page(file)?;
        let page = large_page.unwrap_or(PAGE);
        let is_whole = large_page.is_none_or(|page| div_rem(len, page).1 == 0);
        if div_rem(offset, page).1 != 0 || !is_whole || len == 0 || len > MEMORY_MAX {
            return Err(invalid(format!(
                "cannot map {len} bytes at offset {offset} of the memory's file: the range must \
                 consist of whole pages of {page} bytes, at most {MEMORY_MAX} bytes"
            )));
        }
        let taken = Taken::new(len)?;
        let length = usize::try_from(len).map_err(|_| invalid("too much memory"))?;
        let at = map(file, offset, length)?;
        let mut mapping = Self {
            at,
            len: length,
            watch: None,
        };
        // From here on the mapping owns its share.
        std::mem::forget(taken);
        mapping.watch = Some(Watch::new(at, length, cut.clone())?);
        Ok(mapping)
    }

    /// The mapped address.
    pub(crate) fn at(&self) -> NonNull<u8> {
        self.at
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.watch = None;
        let (at, len) = (self.at.as_ptr() as usize, self.len);
        let unmap = move || {
            // SAFETY: mapped by `new` with this length, and unmapped once.
            unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(at), len) };
            drop(Taken(len as u64));
        };
        // The last reference may be dropped on a loop by a late request, and unmapping gigabytes
        // takes time.
        if !reactor::is_loop() {
            return unmap();
        }
        let thread = std::thread::Builder::new().name("unmap".to_owned());
        // Without a thread it stays mapped and counted.
        let _ = thread.spawn(unmap);
    }
}

/// A share of [`MAPPED_MAX`], released when it is dropped.
struct Taken(u64);

impl Taken {
    fn new(len: u64) -> io::Result<Self> {
        let add = |mapped: u64| mapped.checked_add(len).filter(|all| *all <= MAPPED_MAX);
        match MAPPED.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(_) => Ok(Self(len)),
            Err(mapped) => Err(invalid(format!(
                "{mapped} bytes of guest memory are mapped already; {len} more exceed the limit"
            ))),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        MAPPED.fetch_sub(self.0, Ordering::AcqRel);
    }
}

fn map(file: &File, offset: u64, len: usize) -> io::Result<NonNull<u8>> {
    let start = i64::try_from(offset).map_err(|_| invalid("the memory's offset is too large"))?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a free address.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            protection,
            flags,
            file.as_raw_fd(),
            start,
        )
    };
    if at == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(
            error.kind(),
            format!("cannot map {len} bytes of memory: {error}"),
        ));
    }
    NonNull::new(at.cast()).ok_or_else(|| invalid("mapped at no address"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    /// Whether a memory file supports seals.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Sharing {
        Unsealed,
        Sealed,
    }

    pub(crate) fn memory_file(len: u64, sharing: Sharing) -> File {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a system call with a constant name.
        let fd = unsafe { libc::memfd_create(c"memory".as_ptr(), flags) };
        assert!(fd >= 0, "no memory file");
        // SAFETY: a new descriptor.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(len).unwrap();
        if sharing == Sharing::Sealed {
            let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
            // SAFETY: a system call on a descriptor owned by `file`.
            assert_eq!(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) }, 0);
        }
        file
    }

    fn refused(file: &File, offset: u64, len: u64) -> Option<String> {
        let mapped = Mapping::new(file, offset, len, &Arc::default());
        mapped.err().map(|error| error.to_string())
    }

    #[test]
    fn only_existing_parts_of_memory_files_are_mapped() {
        const LEN: u64 = 1 << 20;
        for sharing in [Sharing::Unsealed, Sharing::Sealed] {
            let file = memory_file(LEN, sharing);
            for (offset, len, fits) in [
                (0, LEN, true),
                (4096, LEN - 4096, true),
                (4096, 100, true),
                (0, LEN + 1, false),
                (4096, LEN, false),
                (0, 2 * LEN, false),
                (LEN, 4096, false),
                (u64::MAX - 4095, 8192, false),
                (0, u64::MAX, false),
                (0, 0, false),
                (100, 4096, false),
            ] {
                let refused = refused(&file, offset, len);
                assert_eq!(
                    refused.is_none(),
                    fits,
                    "{len} bytes at {offset}: {refused:?}"
                );
            }
        }
    }

    #[test]
    fn other_file_types_are_refused() {
        let folder = File::open("/proc/self").unwrap();
        let device = File::open("/dev/zero").unwrap();
        let regular = File::open(std::env::current_exe().unwrap()).unwrap();
        for file in [folder, device, regular] {
            let why = refused(&file, 0, 4096).expect("refused");
            assert!(why.contains("memfd"), "{why}");
        }
    }

    #[test]
    fn mapped_address_space_is_bounded_across_sessions() {
        let file = memory_file(MEMORY_MAX, Sharing::Unsealed);
        assert!(refused(&file, 0, MEMORY_MAX + 4096).is_some());
        let held: Vec<_> = std::iter::repeat_with(|| Taken::new(MEMORY_MAX))
            .take(100)
            .map_while(Result::ok)
            .collect();
        assert!(held.len() <= 16, "{} were taken", held.len());
        assert!(
            refused(&file, 0, MEMORY_MAX)
                .unwrap()
                .contains("exceed the limit")
        );
        drop(held);
        assert!(refused(&file, 0, MEMORY_MAX).is_none());
    }
}
