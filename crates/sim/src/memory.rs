//! The simulation's allocator: memory that is given back goes onto a list of its thread and size, and the next who asks
//! for that size has it, a few instructions later. States are opened and dropped some thousand times per second with a
//! thousand pieces of memory each, a good part of them pages of 4 KiB, for which other allocators have no short way.
//!
//! Leaves out: large and aligned memory, and what lists are filled from, which are the allocator's beneath.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::null_mut;
use units::prefetch;

/// Sizes up to this one are rounded up to multiples of [`ALIGN`], bytes.
const FINE: usize = 1024;
/// Larger ones, up to this one, to quarters of powers of two, bytes.
const LARGEST: usize = 64 << 10;
/// Alignment of all memory of lists.
const ALIGN: usize = 16;
/// Lists: of small sizes, and four for each power of two above.
const LISTS: usize = FINE / ALIGN + 4 * (LARGEST / FINE).ilog2() as usize;
/// Bytes that a thread's lists keep.
const KEEP: usize = 256 << 20;

/// A thread's lists. The first bytes of each piece are the address of the next.
struct Lists {
    first: [Cell<*mut u8>; LISTS],
    bytes: Cell<usize>,
}

thread_local! {
    // Without a destructor: memory is requested until the very end of a thread.
    static LISTS_OF: Lists = const {
        Lists {
            first: [const { Cell::new(null_mut()) }; LISTS],
            bytes: Cell::new(0),
        }
    };
}

/// The list for a size, and how large its pieces are.
fn list_of(size: usize) -> (usize, usize) {
    let last = size.max(1) - 1;
    if size <= FINE {
        let list = last / ALIGN;
        return (list, (list + 1) * ALIGN);
    }
    let power = last.ilog2();
    let quarter = (last >> (power - 2)) & 3;
    let list = FINE / ALIGN + 4 * (power - FINE.ilog2()) as usize + quarter;
    (list, (5 + quarter) << (power - 2))
}

/// As it is requested from beneath.
fn piece(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("a small size")
}

fn is_listed(layout: Layout) -> bool {
    layout.size() <= LARGEST && layout.align() <= ALIGN
}

/// The allocator.
pub struct Lifo;

impl Lifo {
    fn take(list: usize, bytes: usize) -> *mut u8 {
        LISTS_OF.with(|lists| {
            let first = lists.first[list].get();
            if !first.is_null() {
                // SAFETY: pieces on a list are unused, large enough for an address, and begin with the next one's.
                let next = unsafe { first.cast::<*mut u8>().read() };
                // The next allocation of this size does not wait for it.
                prefetch(next);
                lists.first[list].set(next);
                lists.bytes.set(lists.bytes.get() - bytes);
            }
            first
        })
    }

    /// False when the lists keep enough.
    fn keep(memory: *mut u8, list: usize, bytes: usize) -> bool {
        LISTS_OF.with(|lists| {
            let kept = lists.bytes.get() + bytes;
            if kept > KEEP {
                return false;
            }
            // SAFETY: it was returned, so that it is unused, and is at least as large and as aligned as an address.
            unsafe { memory.cast::<*mut u8>().write(lists.first[list].get()) };
            lists.first[list].set(memory);
            lists.bytes.set(kept);
            true
        })
    }

    /// Returns the memory of the calling thread's lists: the thread ends.
    pub fn forget_lists() {
        for list in 0..LISTS {
            let bytes = match list.checked_sub(FINE / ALIGN) {
                None => (list + 1) * ALIGN,
                Some(above) => (5 + above % 4) << (FINE.ilog2() as usize - 2 + above / 4),
            };
            loop {
                let memory = Self::take(list, bytes);
                if memory.is_null() {
                    break;
                }
                // SAFETY: all on this list was allocated there with this layout.
                unsafe { MiMalloc.dealloc(memory, piece(bytes)) };
            }
        }
    }
}

// SAFETY: memory is from the allocator beneath, as large as its list's pieces or as the layout where it is on none, which
// depends on the layout alone; what is on a list is handed out once, as it is taken off.
unsafe impl GlobalAlloc for Lifo {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_listed(layout) {
            // SAFETY: as the caller promises.
            return unsafe { MiMalloc.alloc(layout) };
        }
        let (list, bytes) = list_of(layout.size());
        let memory = Self::take(list, bytes);
        if memory.is_null() {
            // SAFETY: the size is not 0.
            return unsafe { MiMalloc.alloc(piece(bytes)) };
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_listed(layout) {
            // SAFETY: as the caller promises.
            return unsafe { MiMalloc.alloc_zeroed(layout) };
        }
        let (list, bytes) = list_of(layout.size());
        let memory = Self::take(list, bytes);
        if memory.is_null() {
            // SAFETY: the size is not 0.
            return unsafe { MiMalloc.alloc_zeroed(piece(bytes)) };
        }
        // SAFETY: it is at least as large as what was requested.
        unsafe { memory.write_bytes(0, layout.size()) };
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !is_listed(layout) {
            // SAFETY: it was had from there with this layout.
            return unsafe { MiMalloc.dealloc(memory, layout) };
        }
        let (list, bytes) = list_of(layout.size());
        if !Self::keep(memory, list, bytes) {
            // SAFETY: it was allocated there with this layout.
            unsafe { MiMalloc.dealloc(memory, piece(bytes)) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that it is one.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_listed(layout), is_listed(wanted)) {
            (true, true) if list_of(layout.size()) == list_of(size) => return memory,
            // SAFETY: it was had from there with this layout.
            (false, false) => return unsafe { MiMalloc.realloc(memory, layout, size) },
            _ => {}
        }
        // SAFETY: the size is not 0, as the caller promises.
        let other = unsafe { self.alloc(wanted) };
        if !other.is_null() {
            // SAFETY: both are at least as large, and two; the old one was had with this layout.
            unsafe {
                other.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_fits_its_list_and_lists_differ() {
        let mut before = (usize::MAX, 0);
        for size in 1..=LARGEST {
            let (list, bytes) = list_of(size);
            assert!(
                list < LISTS && bytes >= size && bytes % ALIGN == 0,
                "{size}"
            );
            assert!(bytes <= size + ALIGN.max(size / 4), "{size} takes {bytes}");
            assert!(list == before.0 || bytes > before.1, "{size}");
            before = (list, bytes);
        }
        assert_eq!(list_of(4096).1, 4096);
        assert_eq!(list_of(LARGEST), (LISTS - 1, LARGEST));
    }

    #[test]
    fn memory_is_used_again_and_keeps_what_it_held_as_it_grows() {
        let small = Layout::from_size_align(3000, 8).expect("a layout");
        // SAFETY: sizes are not 0; memory is written within its size, and given back once with its layout.
        unsafe {
            let memory = Lifo.alloc(small);
            memory.write_bytes(7, 3000);
            Lifo.dealloc(memory, small);
            let again = Lifo.alloc_zeroed(small);
            assert_eq!(again, memory);
            let held = std::slice::from_raw_parts(again, 3000);
            assert!(held.iter().all(|byte| *byte == 0));
            again.write_bytes(9, 3000);
            let grown = Lifo.realloc(again, small, 100_000);
            let held = std::slice::from_raw_parts(grown, 3000);
            assert!(held.iter().all(|byte| *byte == 9));
            let large = Layout::from_size_align(100_000, 8).expect("a layout");
            let shrunk = Lifo.realloc(grown, large, 10);
            assert_eq!(*shrunk, 9);
            Lifo.dealloc(shrunk, Layout::from_size_align(10, 8).expect("a layout"));
            Lifo::forget_lists();
        }
    }
}
