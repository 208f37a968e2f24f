//! Memory bounds of decoders, by an allocator that counts what is live and its peak.
//!
//! The counters are the process's, because a target may decode on threads of its own. Targets must
//! therefore not run side by side in one process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`, and `ptr` came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `decode` and returns its value.
///
/// # Panics
/// When the process's memory grows by more than `limit` bytes at any moment of it.
pub fn bounded<T>(limit: usize, decode: impl FnOnce() -> T) -> T {
    let before = LIVE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let value = decode();
    let held = PEAK_BYTES.load(Relaxed).saturating_sub(before);
    assert!(
        held <= limit,
        "decoding took {held} bytes of memory, the limit is {limit}"
    );
    value
}
