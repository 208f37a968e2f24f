//! Survives truncation of shared memory by its owner.
//!
//! A mapped file can be truncated by the program that shared it. Accesses beyond its new end raise
//! SIGBUS, which would terminate the daemon. The signal handler replaces the missing pages by
//! anonymous zero pages and marks the session of the mapping; the access is repeated and succeeds,
//! and the session ends when it sees the mark.
//!
//! The handler only reads atomics and calls `mmap`, which is async-signal-safe in practice:
//! mappings are registered in a list of blocks that only grows, with reused entries. A SIGBUS
//! elsewhere is passed to the previous handler.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Entries per block.
const BLOCK: usize = 64;
/// The handler replaces one page at the first fault in a mapping, then twice as many each time:
/// intact pages are preserved for requests in flight, and large mappings take few faults. This is
/// the maximum step, as a power of two.
const STEP_MAX: u32 = 32;

/// A mapping. The entry is in use while `end` is not 0, so `end` is set last and cleared first.
#[derive(Default)]
struct Entry {
    start: AtomicUsize,
    end: AtomicUsize,
    faults: AtomicU32,
    mark: AtomicPtr<AtomicBool>,
}

struct Block {
    entries: [Entry; BLOCK],
    next: *const Block,
}

/// The newest block.
static BLOCKS: AtomicPtr<Block> = AtomicPtr::new(null_mut());
/// Unused entries.
static FREE: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// The previous action, set before the handler is installed.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Watches a mapping until it is dropped, which must happen before the memory is unmapped.
pub(crate) struct Watch {
    entry: &'static Entry,
    /// The session's mark; kept alive while the entry points to it.
    _mark: Arc<AtomicBool>,
}

impl Watch {
    /// Watches the `len` bytes at `at`, which must be a whole readable and writable mapping; a
    /// fault in it sets `mark`.
    ///
    /// # Errors
    /// When the handler cannot be installed.
    pub(crate) fn new(at: NonNull<u8>, len: usize, mark: Arc<AtomicBool>) -> io::Result<Self> {
        install()?;
        let entry = free_entry();
        let start = at.as_ptr() as usize;
        entry.faults.store(0, Ordering::Relaxed);
        entry
            .mark
            .store(Arc::as_ptr(&mark).cast_mut(), Ordering::Relaxed);
        entry.start.store(start, Ordering::Release);
        entry.end.store(start + len, Ordering::Release);
        Ok(Self { entry, _mark: mark })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.entry.end.store(0, Ordering::SeqCst);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.entry);
    }
}

/// An unused entry. Blocks are never freed, since a handler may read them at any time.
fn free_entry() -> &'static Entry {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = free.pop() {
        return entry;
    }
    let block: &'static Block = Box::leak(Box::new(Block {
        entries: std::array::from_fn(|_| Entry::default()),
        next: BLOCKS.load(Ordering::Acquire),
    }));
    // Protected by the lock of `FREE`: no other thread adds a block.
    BLOCKS.store(std::ptr::from_ref(block).cast_mut(), Ordering::Release);
    let (first, rest) = block.entries.split_first().expect("a block has entries");
    free.extend(rest);
    first
}

fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: a system call without memory access.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Release);
    // SAFETY: all zeroes are a valid value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only queries the present action.
    if unsafe { libc::sigaction(libc::SIGBUS, null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // It cannot be set already: guarded by the flag, under its lock.
    let _ = BEFORE.set(before);
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    // Use the alternate stack that Rust provides to each thread.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler only calls async-signal-safe functions.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *installed = true;
    Ok(())
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `info`; a signal generated by a fault has its address.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if is_fault && replace(address) {
        return;
    }
    let before = BEFORE.get();
    match before.map(|before| before.sa_sigaction) {
        Some(handler) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: it was installed as a handler; one without SA_SIGINFO ignores the additional
            // arguments.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        _ => {
            // The access is repeated and terminates the process, as without this handler.
            // SAFETY: a system call that is permitted in a handler.
            unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
        }
    }
}

/// Replaces the memory at the address of a fault, if it belongs to a watched mapping.
fn replace(address: usize) -> bool {
    let mut block = BLOCKS.load(Ordering::Acquire).cast_const();
    // SAFETY: null or a block, which is never freed.
    while let Some(known) = unsafe { block.as_ref() } {
        if known.entries.iter().any(|entry| entry.replace(address)) {
            return true;
        }
        block = known.next;
    }
    false
}

impl Entry {
    fn replace(&self, address: usize) -> bool {
        let end = self.end.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Acquire);
        // An entry being changed is not that of the fault: threads that access memory keep its
        // entry.
        if !(start..end).contains(&address) || self.end.load(Ordering::Acquire) != end {
            return false;
        }
        let page = PAGE.load(Ordering::Acquire);
        let from = address - address % page;
        let end = end.next_multiple_of(page);
        let step = self.faults.fetch_add(1, Ordering::Relaxed).min(STEP_MAX);
        let len = (end - from).min(page << step);
        // Huge pages can only be replaced as a whole.
        if !map_zeroes(from, len) && !map_zeroes(start, end - start) {
            return false;
        }
        // SAFETY: not null, and alive while the entry is in use.
        unsafe { (*self.mark.load(Ordering::Acquire)).store(true, Ordering::Release) };
        true
    }
}

fn map_zeroes(at: usize, len: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the range is within our mapping, which stays mapped; `errno` is restored for the
    // interrupted code.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let mapped = libc::mmap(at as *mut c_void, len, protection, flags, -1, 0);
        *errno = before;
        mapped != libc::MAP_FAILED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Mapping;
    use crate::shared::tests::{Sharing, memory_file};

    #[test]
    fn truncated_memory_reads_as_zeroes_and_marks_only_its_session() {
        let (cut, whole) = (
            memory_file(1 << 20, Sharing::Unsealed),
            memory_file(1 << 20, Sharing::Unsealed),
        );
        let marks = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let map = |file, mark: &Arc<AtomicBool>| Mapping::new(file, 0, 1 << 20, mark).unwrap();
        let (first, second) = (map(&cut, &marks[0]), map(&whole, &marks[1]));
        let byte = |map: &Mapping, at| {
            // SAFETY: within the mapping.
            unsafe { map.at().add(at).read_volatile() }
        };
        let put = |map: &Mapping, at, byte| {
            // SAFETY: within the mapping.
            unsafe { map.at().add(at).write_volatile(byte) }
        };
        for map in [&first, &second] {
            (0..1 << 20).step_by(4096).for_each(|at| put(map, at, 7));
        }
        cut.set_len(8192).unwrap();
        assert_eq!(byte(&first, 4096), 7, "intact pages are preserved");
        assert!(!marks[0].load(Ordering::Acquire));
        assert_eq!(byte(&first, 8192), 0);
        for at in (8192..1 << 20).step_by(4096) {
            assert_eq!(byte(&first, at), 0, "at {at}");
            put(&first, at, 9);
            assert_eq!(byte(&first, at), 9, "at {at}");
        }
        assert_eq!(byte(&first, 4096), 7);
        assert_eq!(byte(&second, 1 << 19), 7);
        assert!(marks[0].load(Ordering::Acquire) && !marks[1].load(Ordering::Acquire));
        // Its entry is reused.
        drop(first);
        let third = map(&whole, &marks[1]);
        whole.set_len(0).unwrap();
        assert_eq!((byte(&third, 0), byte(&second, 0)), (0, 0));
        assert!(marks[1].load(Ordering::Acquire));
    }
}
