//! Surviving memory that its owner cuts short.
//!
//! A file that is mapped here can be truncated by the program that shared it. An access past its new end raises SIGBUS,
//! which would end the daemon. The handler puts anonymous memory of zeroes in the place of what is gone and marks the
//! session that the mapping belongs to; the access is repeated and goes on, and the session ends when it sees the mark.
//!
//! The handler only reads atomics and calls `mmap`, both of which are safe in it: mappings are entered into a list of
//! blocks that only grows, and whose entries are used again. A SIGBUS of anything else goes to the handler that was
//! there before.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Entries of a block.
const BLOCK: usize = 64;
/// The handler replaces a page at the first fault in a mapping, then twice as many each time: what was not cut stays what
/// it is for requests under way, and a large mapping takes few faults. This is the largest step, as a power of two.
const STEP_MAX: u32 = 32;

/// A mapping. It is in use while `end` is not 0, which is therefore set last and cleared first.
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
/// Entries that are not in use.
static FREE: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// What is done about other faults: set before the handler is.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Watches a mapping until it is dropped, which has to be before the memory is unmapped.
pub(crate) struct Watch {
    entry: &'static Entry,
    /// What the handler marks; held while the entry points to it.
    _mark: Arc<AtomicBool>,
}

impl Watch {
    /// Watches the `len` bytes at `at`, a whole mapping of its own of readable and writable memory; a fault in them sets
    /// `mark`.
    ///
    /// # Errors
    /// When the system does not take the handler.
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

/// An entry that is not in use. Blocks are never freed, since a handler may read them at any time.
fn free_entry() -> &'static Entry {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = free.pop() {
        return entry;
    }
    let block: &'static Block = Box::leak(Box::new(Block {
        entries: std::array::from_fn(|_| Entry::default()),
        next: BLOCKS.load(Ordering::Acquire),
    }));
    // Under the lock of `FREE`: nobody else adds a block.
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
    // SAFETY: plain system call.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Release);
    // SAFETY: all zeroes is a valid value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks for the present action.
    if unsafe { libc::sigaction(libc::SIGBUS, null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // It was not set before: the flag says so, under its lock.
    let _ = BEFORE.set(before);
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    // On the stack that Rust gives each thread for its own handler.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler calls nothing that is not safe in one.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *installed = true;
    Ok(())
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid `info`; a signal that it made for a fault has its address.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if is_fault && replace(address) {
        return;
    }
    let before = BEFORE.get();
    match before.map(|before| before.sa_sigaction) {
        Some(handler) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: it was installed as a handler; one of a signal alone ignores what else it is called with.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        _ => {
            // The access is repeated and ends the process, as it would have without this handler.
            // SAFETY: plain system call, which is allowed in a handler.
            unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
        }
    }
}

/// Replaces the memory at a fault's address, if it belongs to a mapping that is watched.
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
        // An entry that is being changed is not the one of the fault: whoever accesses memory keeps its entry.
        if !(start..end).contains(&address) || self.end.load(Ordering::Acquire) != end {
            return false;
        }
        let page = PAGE.load(Ordering::Acquire);
        let from = address - address % page;
        let end = end.next_multiple_of(page);
        let step = self.faults.fetch_add(1, Ordering::Relaxed).min(STEP_MAX);
        let len = (end - from).min(page << step);
        // Memory of large pages can only be replaced as a whole.
        if !map_zeroes(from, len) && !map_zeroes(start, end - start) {
            return false;
        }
        // SAFETY: not null and alive while the entry is in use.
        unsafe { (*self.mark.load(Ordering::Acquire)).store(true, Ordering::Release) };
        true
    }
}

fn map_zeroes(at: usize, len: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the range lies within a mapping of ours, which stays mapped; `errno` is put back for the interrupted code.
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
    fn memory_that_was_cut_reads_as_zeroes_and_marks_its_session_alone() {
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
        assert_eq!(byte(&first, 4096), 7, "what is there stays");
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
        // Its entry is used again.
        drop(first);
        let third = map(&whole, &marks[1]);
        whole.set_len(0).unwrap();
        assert_eq!((byte(&third, 0), byte(&second, 0)), (0, 0));
        assert!(marks[1].load(Ordering::Acquire));
    }
}
