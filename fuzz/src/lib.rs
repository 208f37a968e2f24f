//! What the targets share: an allocator that counts, and bytes made right up to their checksum, so
//! that what is mutated reaches the decoder behind it.

use format::{Page, PageHeader, PagePtr, crc32c};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of a page or a block.
pub const PAGE: usize = 4096;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it is; only sizes are noted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(
            LIVE.fetch_add(layout.size(), Relaxed) + layout.size(),
            Relaxed,
        );
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A write to a socket that its other end has closed is an error here, as in every program with a `main` of its own.
fn ignore_broken_pipes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: it is ignored, and no function of ours is called.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    });
}

/// Runs `decode` and returns what it gives.
///
/// # Panics
/// When it holds more than `limit` bytes of memory at any moment.
pub fn bounded<T>(limit: usize, decode: impl FnOnce() -> T) -> T {
    ignore_broken_pipes();
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let value = decode();
    let held = PEAK.load(Relaxed).saturating_sub(before);
    assert!(
        held <= limit,
        "{held} bytes of memory for one record, {limit} allowed"
    );
    value
}

/// A whole block that begins with `data`.
pub fn block(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    let length = data.len().min(PAGE);
    bytes[..length].copy_from_slice(&data[..length]);
    bytes
}

/// Puts the checksum of all bytes from 8 on at 4, as checkpoints and journal pages have it.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The page of which `data` is the content, opened as if a pointer led to it. What `data` is too
/// short for is zero.
pub fn page(header: PageHeader, data: &[u8]) -> Page {
    let mut bytes = Page::new(header).bytes().to_vec();
    let length = data.len().min(PAGE - 64);
    bytes[64..64 + length].copy_from_slice(&data[..length]);
    let ptr = PagePtr {
        crc: crc32c(&bytes),
        ..PagePtr::default()
    };
    Page::open(&bytes, ptr, header).expect("a whole page is opened")
}

/// Opens the bytes as they are, whatever their header says.
pub fn any_page(data: &[u8], header: PageHeader) {
    let bytes = block(data);
    let ptr = PagePtr {
        crc: crc32c(&bytes),
        ..PagePtr::default()
    };
    if let Some(page) = bounded(2 * PAGE, || Page::open(&bytes, ptr, header)) {
        assert_eq!(page.crc(), ptr.crc);
    }
}
