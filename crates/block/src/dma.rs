//! Private memory that a drive can transfer into directly.

mod arena;

use arena::Arena;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

const ALIGN: usize = 4096;
const CLASSES: usize = 9; // 4 KiB << 0..=8: up to 1 MiB

struct Memory {
    ptr: NonNull<u8>,
    capacity: usize,
    /// Part of the arena, and so never given back to the system by itself.
    carved: bool,
}

impl Memory {
    fn new(capacity: usize) -> Self {
        let layout =
            Layout::from_size_align(capacity, ALIGN).expect("a size below the address space");
        // SAFETY: the capacity is never zero (see `DmaPool::get`).
        let ptr = unsafe { alloc_zeroed(layout) };
        let Some(ptr) = NonNull::new(ptr) else {
            handle_alloc_error(layout)
        };
        Self {
            ptr,
            capacity,
            carved: false,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.carved {
            return;
        }
        let layout = Layout::from_size_align(self.capacity, ALIGN).expect("as it was allocated");
        // SAFETY: allocated with this layout in `new`, freed once.
        unsafe { dealloc(self.ptr.as_ptr(), layout) }
    }
}

/// State that the pool and its buffers share.
struct Store {
    free: RefCell<[Vec<Memory>; CLASSES]>,
    arena: Option<Arena>,
}

struct Shared {
    memory: Option<Memory>,
    store: Rc<Store>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        let class = class_of(memory.capacity);
        if class < CLASSES {
            let mut free = self.store.free.borrow_mut();
            if memory.carved || (free[class].len() + 1) * memory.capacity <= KEEP_BYTES {
                free[class].push(memory);
            }
        }
    }
}

/// Free memory from outside of the arena kept for each size class, in bytes.
const KEEP_BYTES: usize = 8 << 20;

fn class_of(capacity: usize) -> usize {
    (capacity / ALIGN).trailing_zeros() as usize
}

/// Hands out [`DmaBuf`]s and takes their memory back; one a thread, bounded in what it keeps.
///
/// A pool may have an **arena**: one piece of memory that the operating system can be told of
/// once, so that transfers to and from it need not be prepared one by one. Buffers come from it
/// as long as it lasts, then from the heap.
#[derive(Clone)]
pub struct DmaPool {
    store: Rc<Store>,
}

impl Default for DmaPool {
    fn default() -> Self {
        Self::new()
    }
}

impl DmaPool {
    /// An empty pool without an arena.
    pub fn new() -> Self {
        Self::with(None)
    }

    /// An empty pool with an arena of `bytes` (rounded up to 2 MiB); without one where the system
    /// does not give the memory.
    pub fn with_arena(bytes: usize) -> Self {
        Self::with(Arena::new(bytes))
    }

    fn with(arena: Option<Arena>) -> Self {
        let store = Store {
            free: RefCell::default(),
            arena,
        };
        Self {
            store: Rc::new(store),
        }
    }

    /// First byte and length in bytes of the arena, if there is one. It lives as long as the pool
    /// and every buffer of it.
    pub fn arena(&self) -> Option<(*mut u8, usize)> {
        self.store.arena.as_ref().map(Arena::range)
    }

    /// A buffer of `len` bytes, aligned to 4 KiB. Its content is whatever was there before.
    pub fn get(&self, len: usize) -> DmaBuf {
        let capacity = len.max(ALIGN).next_power_of_two();
        let memory = self.reuse(capacity);
        self.buf(memory.unwrap_or_else(|| Memory::new(capacity)), len)
    }

    fn reuse(&self, capacity: usize) -> Option<Memory> {
        let class = class_of(capacity);
        if class >= CLASSES {
            return None;
        }
        let free = self.store.free.borrow_mut()[class].pop();
        free.or_else(|| {
            let ptr = self.store.arena.as_ref()?.carve(capacity)?;
            Some(Memory {
                ptr,
                capacity,
                carved: true,
            })
        })
    }

    fn buf(&self, memory: Memory, len: usize) -> DmaBuf {
        let ptr = memory.ptr;
        DmaBuf {
            shared: Rc::new(Shared {
                memory: Some(memory),
                store: self.store.clone(),
            }),
            ptr,
            len,
        }
    }

    /// A buffer of `len` zeroes.
    pub fn zeroed(&self, len: usize) -> DmaBuf {
        let mut buf = self.get(len);
        buf.fill(0);
        buf
    }
}

/// Memory aligned to 4 KiB that belongs to the engine: no guest sees it.
///
/// Clones share the memory, so that one write can go to several members. Only a buffer without
/// clones can be changed.
#[derive(Clone)]
pub struct DmaBuf {
    shared: Rc<Shared>,
    ptr: NonNull<u8>,
    len: usize,
}

impl DmaBuf {
    /// The same memory, `start..start + len` of it.
    ///
    /// # Panics
    /// When the range is outside of this buffer.
    pub fn slice(&self, start: usize, len: usize) -> Self {
        assert!(
            start.checked_add(len).is_some_and(|end| end <= self.len),
            "slice outside of the buffer"
        );
        // SAFETY: `start` is within the allocation.
        let ptr = unsafe { self.ptr.add(start) };
        Self {
            shared: self.shared.clone(),
            ptr,
            len,
        }
    }

    /// First byte, for the operating system.
    pub fn as_raw(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Whether this is the only handle on its memory.
    pub fn is_unique(&self) -> bool {
        Rc::strong_count(&self.shared) == 1
    }
}

impl Deref for DmaBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: initialised when allocated; it is not changed while shared, and a drive that
        // reads into it holds the only handle.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl DerefMut for DmaBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.is_unique(), "a shared buffer cannot be changed");
        // SAFETY: the only handle, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl std::fmt::Debug for DmaBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DmaBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_used_again() {
        let pool = DmaPool::new();
        let first = pool.get(5000);
        let address = first.as_raw();
        assert_eq!(address as usize % ALIGN, 0);
        assert_eq!(first.len(), 5000);
        drop(first);
        assert_eq!(pool.get(8192).as_raw(), address);
    }

    #[test]
    fn buffers_come_from_the_arena_while_it_lasts() {
        let pool = DmaPool::with_arena(2 << 20);
        let (start, len) = pool.arena().expect("2 MiB can be had");
        let within = |buf: &DmaBuf| (buf.as_raw() as usize).wrapping_sub(start as usize) < len;
        let held: Vec<DmaBuf> = (0..3).map(|_| pool.get(1 << 20)).collect();
        assert_eq!(
            held.iter().map(within).collect::<Vec<_>>(),
            [true, true, false]
        );
        drop(held);
        let kept = pool.get(1 << 20);
        drop(pool);
        assert!(
            kept.iter().all(|byte| *byte == 0),
            "the buffer outlives its pool"
        );
    }

    #[test]
    #[should_panic(expected = "cannot be changed")]
    fn a_shared_buffer_cannot_be_changed() {
        let pool = DmaPool::new();
        let mut buf = pool.zeroed(4096);
        let _other = buf.slice(0, 512);
        buf[0] = 1;
    }
}
